import { bug, syntax, validation } from './known-bad-input'
import * as database from './known-database'
import { aws, grpc, httpRefused, httpTransient } from './known-http'
import { connectionLost, kafka, network, ours, publish, timeout, tls, undici } from './known-network'
import type { Finding } from './known-network'
import type { Look } from './look'
import type { DeadLetterReason } from './verdict'

/** A row of the built-in table, as the docs list it. */
export interface BuiltInRule {
  /** Stable; also `rule` of the verdict. */
  readonly id: string
  readonly verdict: 'retry' | 'dead-letter' | 'hold'
  /** The verdict's `because`; where there is a detail (the code, the status), it follows in brackets. */
  readonly because: string
}

export interface Row extends BuiltInRule {
  /** Of a dead-letter row; `non-retryable` where not given. */
  readonly reason?: DeadLetterReason
  match(seen: Look): Finding
}

type Match = Row['match']
const again = (id: string, match: Match, because: string): Row => ({ id, match, verdict: 'retry', because })
const never = (id: string, match: Match, because: string, reason?: DeadLetterReason): Row =>
  reason === undefined
    ? { id, match, verdict: 'dead-letter', because }
    : { id, match, verdict: 'dead-letter', because, reason }

/** What the handler says itself. Looked for in everything that was thrown before any other row; the outermost wins. */
export const spokenRows: readonly Row[] = [
  again('retryable-error', ours('RETRYLINE_RETRYABLE'), 'the handler threw a RetryableError'),
  { id: 'outage-error', match: ours('RETRYLINE_OUTAGE'), verdict: 'hold', because: 'the handler says that it is down' },
  never('non-retryable-error', ours('RETRYLINE_NON_RETRYABLE'), 'the handler threw a NonRetryableError'),
]

/**
 * What is known of other people's errors. The first row that matches any error of a chain decides, so what stands higher
 * is stronger: a lost connection behind a TypeError is a lost connection.
 */
export const knownRows: readonly Row[] = [
  again('handler-timeout', ours('RETRYLINE_HANDLER_TIMEOUT'), 'the handler did not settle within handlerTimeout'),
  again('network', network, 'the network failed'),
  again('undici', undici, 'the HTTP connection failed'),
  again('tls', tls, 'the TLS handshake failed'),
  again('connection-lost', connectionLost, 'the connection to a database or cache was lost'),
  again('kafka', kafka, 'Kafka could not be reached, or was not ready'),
  again('publish', publish, 'the broker did not take what was published'),
  again('timeout', timeout, 'a time limit was reached'),
  again('http-transient', httpTransient, 'the HTTP status asks for a retry'),
  // Above the next row: DynamoDB and others throttle with HTTP 400.
  again('aws', aws, 'AWS throttles, or says that it can be retried'),
  never('http-refused', httpRefused, 'the HTTP status says that the request itself is refused'),
  again('sql-transient', database.sqlTransient, 'SQLSTATE of a database trouble that passes'),
  again('mysql', database.mysql, 'MySQL: a lock, too many connections or a lost connection'),
  again('mongo', database.mongo, 'MongoDB says that it can be retried, or could not be reached'),
  again('prisma-transient', database.prismaTransient, 'Prisma: the database could not be reached, or a conflict'),
  again('redis', database.redis, 'Redis is not ready'),
  again('grpc', grpc, 'the gRPC status asks for a retry'),
  again('optimistic-lock', database.optimisticLock, 'somebody else changed the row at the same time'),
  never('sql-permanent', database.sqlPermanent, 'SQLSTATE of refused data or a wrong statement'),
  never('prisma-permanent', database.prismaPermanent, 'Prisma: a constraint refuses the data'),
  never('undecodable', ours('RETRYLINE_UNDECODABLE'), 'the value could not be decoded', 'undecodable'),
  never('validation', validation, 'the data does not fit its schema'),
  never('syntax', syntax, 'a text could not be parsed'),
  never('bug', bug, 'the code has a bug'),
]

/** The built-in table in its order, for docs and dashboards. */
export const builtInRules: readonly BuiltInRule[] = Object.freeze(
  [...spokenRows, ...knownRows].map(({ id, verdict, because }) => Object.freeze({ id, verdict, because })),
)
