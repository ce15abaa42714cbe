import { type } from 'arktype'
import { KafkaJSConnectionError, KafkaJSNonRetriableError, KafkaJSNumberOfRetriesExceeded } from 'kafkajs'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { builtInRules } from '../../../src/classify'
import { NonRetryableError, RetryableError, RetrylineError, outage } from '../../../src/errors'
import { judge, ofClass, shaped } from './helpers'

const thrownBy = (fn: () => unknown): unknown => {
  try {
    fn()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
const fetchFailed = (cause: unknown): TypeError => new TypeError('fetch failed', { cause })
const postgres = (code: string): Error =>
  ofClass('DatabaseError', 'from the server', { name: 'error', severity: 'ERROR', code, length: 90, routine: 'exec' })
const axios = (status: number, headers = {}): Error =>
  shaped(`Request failed with status code ${status}`, {
    name: 'AxiosError',
    code: status < 500 ? 'ERR_BAD_REQUEST' : 'ERR_BAD_RESPONSE',
    status,
    response: { status, headers },
  })
const aws = (name: string, status: number, more = {}): Error =>
  shaped('Rate exceeded', { name, $fault: 'client', $metadata: { httpStatusCode: status, attempts: 3 }, ...more })
const grpc = (code: number): Error =>
  shaped(`${code} X: no`, { code, details: 'no', metadata: { internalRepr: new Map() } })

/** For each row: errors as the libraries throw them. */
const examples: Record<string, unknown[]> = {
  'retryable-error': [new RetryableError('later'), new Error('x', { cause: new RetryableError('later') })],
  'outage-error': [
    outage('payments'),
    shaped('x', {}, outage('payments', { cause: shaped('x', { code: 'ECONNREFUSED' }) })),
  ],
  'non-retryable-error': [new NonRetryableError('never'), shaped('x', {}, new NonRetryableError('never'))],
  'handler-timeout': [new RetrylineError('RETRYLINE_HANDLER_TIMEOUT', 'too slow')],
  network: [
    shaped('connect ECONNREFUSED 127.0.0.1:5432', { errno: -111, code: 'ECONNREFUSED', syscall: 'connect' }),
    shaped('socket hang up', { code: 'ECONNRESET' }),
    shaped('timeout of 30ms exceeded', { name: 'AxiosError', isAxiosError: true, code: 'ECONNABORTED' }),
    fetchFailed(shaped('getaddrinfo ENOTFOUND no.such.host', { code: 'ENOTFOUND' })),
    ofClass('QueryFailedError', 'x', { driverError: shaped('x', { code: 'ETIMEDOUT' }) }),
    ofClass('DatabaseError', 'x', { parent: shaped('x', { code: 'EPIPE' }) }),
    ...['EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN'].map((code) => shaped('x', { code })),
  ],
  undici: [
    fetchFailed(ofClass('SocketError', 'other side closed', { code: 'UND_ERR_SOCKET' })),
    new TypeError('terminated', { cause: ofClass('BodyTimeoutError', 'x', { code: 'UND_ERR_BODY_TIMEOUT' }) }),
    shaped('x', { name: 'ConnectTimeoutError', code: 'UND_ERR_CONNECT_TIMEOUT' }),
    shaped('x', { name: 'HeadersTimeoutError', code: 'UND_ERR_HEADERS_TIMEOUT' }),
    fetchFailed(shaped('Response does not match the HTTP/1.1 protocol', { code: 'HPE_INVALID_CONSTANT' })),
    fetchFailed(shaped('x', { name: 'HTTPParserError', code: undefined, data: 'garbage' })),
  ],
  tls: [fetchFailed(shaped('certificate has expired', { code: 'CERT_HAS_EXPIRED' })), shaped('x', { code: 'EPROTO' })],
  'connection-lost': [
    new Error('Connection terminated unexpectedly'),
    new Error('timeout exceeded when trying to connect'),
    ofClass('MaxRetriesPerRequestError', 'Reached the max retries per request limit (which is 20).'),
    ofClass('SocketClosedUnexpectedlyError', 'Socket closed unexpectedly'),
    shaped('Operation timeout', { name: 'SequelizeConnectionAcquireTimeoutError' }),
  ],
  kafka: [
    new KafkaJSConnectionError('Connection error', { broker: 'b:9092' }),
    new KafkaJSNumberOfRetriesExceeded(new Error('x'), { retryCount: 5, retryTime: 1000 }),
    shaped('This is not the leader', { name: 'KafkaJSProtocolError', retriable: true, code: 6 }),
  ],
  publish: [new RetrylineError('RETRYLINE_PUBLISH', 'not acknowledged')],
  timeout: [
    new DOMException('The operation was aborted due to timeout', 'TimeoutError'),
    shaped(
      'The operation was aborted',
      { name: 'AbortError', code: 'ABORT_ERR' },
      new DOMException('t', 'TimeoutError'),
    ),
    shaped('aborted', { name: 'AbortError', reason: new DOMException('t', 'TimeoutError') }),
    shaped('Request timed out: GET http://x', { name: 'TimeoutError' }),
    aws('RequestTimeout', 400),
  ],
  'http-transient': [
    axios(503),
    axios(429),
    shaped('ServerError', { statusCode: 500 }),
    shaped('x', { response: { status: 502 } }),
    shaped('x', { response: { statusCode: 504 } }),
    aws('InternalServerError', 500),
    shaped('x', { status: '408' }),
    shaped('x', { status: 'error', statusCode: 425 }),
    new Response(null, { status: 503 }),
  ],
  aws: [
    aws('ThrottlingException', 400),
    aws('ProvisionedThroughputExceededException', 400),
    aws('Odd', 400, { $retryable: { throttling: false } }),
    shaped('Rate exceeded', { code: 'Throttling', statusCode: 400 }),
  ],
  'http-refused': [
    axios(400),
    axios(422),
    axios(401),
    shaped('NotFound', { statusCode: 404 }),
    aws('ValidationException', 400),
  ],
  'sql-transient': [
    ...['08006', '08S01', '40001', '40P01', '53100', '53300', '55P03', '57014', '57P01', '57P05'].map(postgres),
    ofClass('PostgresError', 'x', { name: 'PostgresError', severity_local: 'FATAL', code: '40001' }),
    shaped('could not serialize access due to concurrent update', { code: '40001' }),
    shaped('disk full', { code: '53100' }),
    new Error('Failed query', { cause: postgres('40001') }),
  ],
  mysql: [
    shaped('Lock wait timeout exceeded', { code: 'ER_LOCK_WAIT_TIMEOUT', errno: 1205, sqlState: 'HY000' }),
    shaped('Connection lost', { code: 'PROTOCOL_CONNECTION_LOST', fatal: true }),
    shaped('x', { code: 'ER_TOO_MANY_USER_CONNECTIONS', errno: 1203, sqlState: '42000' }),
  ],
  mongo: [
    shaped('WriteConflict', { name: 'MongoServerError', code: 112, errorLabels: ['TransientTransactionError'] }),
    shaped('x', { name: 'MongoServerError', hasErrorLabel: (label: string) => label === 'RetryableWriteError' }),
    shaped('connection 1 to 127.0.0.1 closed', { name: 'MongoNetworkError' }),
    shaped('x', { name: 'MongoServerSelectionError', reason: { type: 'Unknown', servers: new Map() } }),
  ],
  'prisma-transient': [
    ...['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2034'].map((code) =>
      shaped('x', { name: 'PrismaClientKnownRequestError', code, clientVersion: '6.0.0', meta: {} }),
    ),
    shaped("Can't reach database server", { name: 'PrismaClientInitializationError', errorCode: 'P1001' }),
  ],
  redis: [
    ofClass('ReplyError', 'LOADING x'),
    ofClass('SimpleError', 'BUSY Redis is busy running a script.'),
    new Error('LOADING Redis is loading the dataset in memory'),
    new Error('TRYAGAIN Multiple keys request during rehashing of slot'),
    new Error('CLUSTERDOWN Hash slot not served'),
  ],
  grpc: [
    grpc(4),
    grpc(8),
    grpc(14),
    shaped('x', { name: 'ConnectError', code: 14, metadata: new Headers(), details: [] }),
  ],
  'optimistic-lock': [
    ofClass('OptimisticLockVersionMismatchError', 'The optimistic lock on entity A failed'),
    shaped('x', { name: 'SequelizeOptimisticLockError' }),
    shaped('x', { name: 'OptimisticLockError' }),
    shaped('No matching document found for id "1"', { name: 'VersionError', version: 1, modifiedPaths: ['a'] }),
  ],
  'sql-permanent': [
    ...['22P02', '22001', '23505', '42P01', '42601'].map(postgres),
    shaped("Duplicate entry '1'", { code: 'ER_DUP_ENTRY', errno: 1062, sqlState: '23000', sqlMessage: 'x' }),
    shaped('x', { name: 'SequelizeDatabaseError', original: postgres('23503') }),
  ],
  'prisma-permanent': [
    shaped('x', { name: 'PrismaClientKnownRequestError', code: 'P2002' }),
    shaped('x', { name: 'PrismaClientKnownRequestError', code: 'P2003' }),
  ],
  undecodable: [new RetrylineError('RETRYLINE_UNDECODABLE', 'no JSON', { cause: new SyntaxError('x') })],
  validation: [
    thrownBy(() => z.object({ a: z.number() }).parse({})),
    thrownBy(() => v.parse(v.object({ a: v.number() }), {})),
    thrownBy(() => type({ a: 'number' }).assert({})),
    shaped('bad', { issues: [{ message: 'a is required', path: ['a'] }] }),
    ofClass('ValidationError', 'validation failed', { ajv: true, errors: [{ keyword: 'type', schemaPath: '#/a' }] }),
    [{ target: {}, property: 'a', constraints: { isInt: 'a must be an integer' }, children: [] }],
    shaped('a is a required field', { name: 'ValidationError', inner: [], errors: ['a is a required field'] }),
    shaped('"a" is required', { name: 'ValidationError', isJoi: true, details: [{ message: 'x', path: ['a'] }] }),
  ],
  syntax: [thrownBy(() => JSON.parse('{'))],
  bug: [
    thrownBy(() => (undefined as unknown as { a: string }).a),
    new RangeError('Invalid array length'),
    new ReferenceError('x is not defined'),
    fetchFailed(new Error('bad port')),
    new TypeError('fetch failed'),
    new Error('handler failed', { cause: new TypeError('x is not a function') }),
  ],
}

describe('every row of the built-in table', () => {
  it('has examples', () => {
    expect(Object.keys(examples)).toEqual(builtInRules.map(({ id }) => id))
  })

  for (const { id, verdict, because } of builtInRules)
    for (const [index, example] of (examples[id] ?? []).entries())
      it(`${id} ${index + 1}`, () => {
        const said = judge(example)
        expect(said).toMatchObject({ rule: id, kind: verdict })
        expect(said.because.startsWith(because)).toBe(true)
      })

  it('says the detail that decided, and the reason of a dead letter', () => {
    expect(judge(shaped('x', { code: 'ECONNREFUSED' }))).toEqual({
      kind: 'retry',
      because: 'the network failed (ECONNREFUSED)',
      known: true,
      rule: 'network',
    })
    expect(judge(axios(422))).toMatchObject({ because: expect.stringContaining('(422)'), reason: 'non-retryable' })
    expect(judge(new RetrylineError('RETRYLINE_UNDECODABLE', 'x'))).toMatchObject({ reason: 'undecodable' })
  })
})

describe('near misses are unclassified', () => {
  const misses: Record<string, unknown> = {
    'an AbortError that is no time-out': shaped('x', { name: 'AbortError', code: 'ABORT_ERR' }),
    'an abort with a reason of its own': new DOMException('stopped', 'AbortError'),
    'undici used wrongly': shaped('x', { name: 'InvalidArgumentError', code: 'UND_ERR_INVALID_ARG' }),
    'kafkajs, not retriable': new KafkaJSNonRetriableError('x'),
    'an exit status': shaped('Command failed', { status: 1 }),
    'a status that is none': shaped('x', { status: 'error', statusCode: 1008 }),
    'HTTP 2xx': shaped('x', { status: 200 }),
    'a payment code that looks like SQLSTATE': shaped('Business Failed', { code: '40004', sub_code: 'ACQ.X' }),
    'SQLSTATE of another class': postgres('28P01'),
    'five letters': shaped('x', { code: 'EPERM' }),
    'an unknown Prisma code': shaped('x', { code: 'P2025' }),
    'a Redis word that begins alike': ofClass('ReplyError', 'BUSYGROUP Consumer Group name already exists'),
    'a sentence that begins alike': new Error('LOADING of the order failed'),
    'a broker code equal to one of gRPC': shaped('x', { code: 14 }),
    'another gRPC status': grpc(5),
    'an application VersionError': shaped('unsupported event version 3', { name: 'VersionError' }),
    'a list of errors that are no issues': shaped('x', { issues: [], errors: ['x'] }),
    'a Mongo duplicate': shaped('E11000', { name: 'MongoServerError', code: 11000, errorLabels: [] }),
    'a code in a name': shaped('x', { name: 'ECONNREFUSED' }),
    'a code as a text': 'ECONNREFUSED',
    'a plain Error': new Error('no stock'),
  }
  for (const [what, error] of Object.entries(misses))
    it(what, () => {
      expect(judge(error)).toMatchObject({ kind: 'dead-letter', reason: 'unclassified', rule: 'unknown' })
      expect(judge(error, { unknownErrors: 'retry' })).toMatchObject({ kind: 'retry', known: false, rule: 'unknown' })
    })
})

describe('the order of the rows', () => {
  const network = shaped('x', { code: 'ECONNRESET' })
  it.each([
    ['what the handler says beats the network', new NonRetryableError('x', { cause: network }), 'non-retryable-error'],
    ['also as a cause', shaped('x', { code: 'ECONNRESET' }, new NonRetryableError('x')), 'non-retryable-error'],
    ['and a validation error', new RetryableError('x', { cause: axios(422) }), 'retryable-error'],
    [
      'the outermost word counts',
      new NonRetryableError('x', { cause: new RetryableError('y') }),
      'non-retryable-error',
    ],
    ['the outermost word counts', new RetryableError('x', { cause: new NonRetryableError('y') }), 'retryable-error'],
    ['a lost connection behind a TypeError', new TypeError('x', { cause: network }), 'network'],
    ['a lost connection behind HTTP 400', shaped('x', { status: 400 }, network), 'network'],
    ['HTTP 500 before a constraint', shaped('x', { status: 500 }, postgres('23505')), 'http-transient'],
    ['HTTP 4xx before a deadlock', shaped('x', { status: 409 }, postgres('40P01')), 'http-refused'],
    ['AWS throttling before HTTP 400', aws('ThrottlingException', 400), 'aws'],
    [
      'a schema registry that is down before undecodable',
      new RetrylineError('RETRYLINE_UNDECODABLE', 'x', { cause: network }),
      'network',
    ],
  ])('%s', (_, error, rule) => {
    expect(judge(error)).toMatchObject({ rule })
  })
})
