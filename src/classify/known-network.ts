import { isRetrylineError } from '../errors'
import type { ErrorCode } from '../errors'
import type { Look } from './look'

/** What a row of the table finds: whether the error is of its kind, or the detail that shows it. */
export type Finding = boolean | string

export function oneOf(value: unknown, known: ReadonlySet<string>): Finding {
  return typeof value === 'string' && known.has(value) && value
}

const named = ({ names }: Look, known: ReadonlySet<string>): Finding => names.find((name) => known.has(name)) ?? false

export const ours = (code: ErrorCode) => (seen: Look) => isRetrylineError(seen.error, code)

// prettier-ignore
const NETWORK = new Set([
  // Node's own (man 2 connect, man 3 getaddrinfo), of sockets and of names.
  'ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'ETIMEDOUT', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH',
  'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'ENETRESET', 'EADDRNOTAVAIL', 'ETIMEOUT',
  'ERR_SOCKET_CONNECTION_TIMEOUT', 'ERR_STREAM_PREMATURE_CLOSE',
  // axios's fetch adapter; request; nodemailer and mssql.
  'ERR_NETWORK', 'ESOCKETTIMEDOUT', 'ECONNECTION', 'ESOCKET', 'ECONNCLOSED',
])

export const network = ({ code }: Look): Finding => oneOf(code, NETWORK)

/** undici's errors of connection, socket and time-out. Its errors of wrong use (`UND_ERR_INVALID_ARG`) are not here. */
// prettier-ignore
const UNDICI = new Set([
  'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_SOCKET', 'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED', 'UND_ERR_INFO', 'UND_ERR_BPL_MISSING_UPSTREAM', 'UND_ERR_PRX_TLS', 'UND_ERR_SOCKS5',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
])

/** `HPE_*`: Node's HTTP parser met something that is not HTTP; the connection broke, or a proxy answered. */
const isParserCode = (code: unknown): code is string =>
  typeof code === 'string' && code.length < 50 && /^HPE_[A-Z_]+$/.test(code)

/** A newer undici leaves the code out of its parser's error. */
const PARSER_CLASS: ReadonlySet<string> = new Set(['HTTPParserError'])

export const undici = (seen: Look): Finding =>
  oneOf(seen.code, UNDICI) || (isParserCode(seen.code) && seen.code) || named(seen, PARSER_CLASS)

/** Node's and OpenSSL's words for a TLS handshake that failed, an expired certificate included: no record's fault. */
const TLS =
  /^(EPROTO|CERT_[A-Z_]+|ERR_TLS_[A-Z_]+|ERR_SSL_[A-Z0-9_]+|(DEPTH_ZERO_)?SELF_SIGNED_CERT(_IN_CHAIN)?|UNABLE_TO_(GET|VERIFY)_[A-Z_]+)$/

export const tls = ({ code }: Look): Finding => typeof code === 'string' && code.length < 80 && TLS.test(code) && code

/** Clients that tell a lost connection by class only: ioredis, redis 4 and 5, Sequelize's pool, knex. */
// prettier-ignore
const CONNECTION_CLASSES = new Set([
  'MaxRetriesPerRequestError', 'ConnectionTimeoutError', 'SocketTimeoutError', 'SocketClosedUnexpectedlyError',
  'ClientOfflineError', 'ClientClosedError', 'ReconnectStrategyError', 'RootNodesUnavailableError',
  'SequelizeConnectionError', 'SequelizeConnectionRefusedError', 'SequelizeConnectionTimedOutError',
  'SequelizeConnectionAcquireTimeoutError', 'SequelizeHostNotFoundError', 'SequelizeHostNotReachableError',
  'KnexTimeoutError',
])

/** Clients that tell it by message only, word for word: pg, pg-pool, ioredis. */
const CONNECTION_MESSAGES = new Set([
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Client has encountered a connection error and is not queryable',
  'timeout expired',
  'timeout exceeded when trying to connect',
  'Query read timeout',
  'Connection is closed.',
  'Command timed out',
])

export const connectionLost = (seen: Look): Finding =>
  named(seen, CONNECTION_CLASSES) || oneOf(seen.message, CONNECTION_MESSAGES)

/** kafkajs calls the last three not retriable, and means by its own retrier, which has already tried. */
// prettier-ignore
const KAFKA = new Set([
  'KafkaJSConnectionError', 'KafkaJSConnectionClosedError', 'KafkaJSRequestTimeoutError', 'KafkaJSBrokerNotFound',
  'KafkaJSNoBrokerAvailableError', 'KafkaJSNumberOfRetriesExceeded', 'KafkaJSTimeout', 'KafkaJSLockTimeout',
  'KafkaJSGroupCoordinatorNotFound',
])

export function kafka(seen: Look): Finding {
  const name = seen.names.find((each) => each.startsWith('KafkaJS'))
  return (name !== undefined && seen.get('retriable') === true && name) || named(seen, KAFKA)
}

/** Our own: the handler published, and the broker did not take it. */
export const publish = ours('RETRYLINE_PUBLISH')

/** `AbortSignal.timeout()` gives a DOMException of this name, as `reason` and as the `cause` of an AbortError. */
const TIMEOUTS = new Set(['TimeoutError', 'RequestTimeout', 'RequestTimeoutException'])

export const timeout = (seen: Look): Finding => named(seen, TIMEOUTS)
