/** How deep kafkajs nests what it wraps (retries around protocol errors). */
const DEPTH = 5

/** The first `type` (Kafka's name of a protocol error) on the error or on what it wraps or gathers. */
export function errorType(error: unknown): string | undefined {
  let at = error as { type?: unknown; cause?: unknown; errors?: unknown } | null | undefined
  for (let i = 0; i < DEPTH && typeof at === 'object' && at !== null; i++) {
    if (typeof at.type === 'string') return at.type
    at = (at.cause ?? (Array.isArray(at.errors) ? at.errors[0] : undefined)) as typeof at
  }
  return undefined
}

/** kafkajs's own words for a codec of its table that nobody has registered. */
const NO_CODEC = /^(\S+) compression not implemented$/
const REGISTER = "register it in kafkajs's CompressionCodecs (docs/operations.md)"
/** So many topics are named: the whole must fit a log line. */
const NAMED = 3

/** What kafkajs's own decoder throws at bytes that it cannot make sense of; Node's and a codec's errors have other names. */
const DECODER_ERRORS: ReadonlySet<unknown> = new Set([
  'KafkaJSNotImplemented',
  'KafkaJSInvalidVarIntError',
  'KafkaJSInvalidLongError',
  'KafkaJSUnsupportedMagicByteInMessageSet',
])

/** Whether a fetch failed because of what was in the answer, not because of the network or the broker. */
export function isUndecodable(error: unknown): boolean {
  const name = nameOf(error)
  return DECODER_ERRORS.has(name) || !(typeof name === 'string' && name.startsWith('KafkaJS'))
}

/** What to tell of a batch that cannot be decoded: kafkajs says what it is, and not what to do. */
export function asUnreadable(error: unknown): unknown {
  return codecOf(error) === undefined ? error : retold(error, `${String((error as Error).message)}: ${REGISTER}`)
}

/**
 * What to tell of a crash. For a batch in a codec that kafkajs does not have, its error says neither where the batch stands
 * nor what to do; it does not know the partition either, since the whole answer to a fetch is thrown away.
 */
export function asCrash(error: unknown, topics: readonly string[]): unknown {
  if (codecOf(error) === undefined) return error
  const names = topics.slice(0, NAMED).map((topic) => `'${topic}'`)
  if (topics.length > NAMED) names.push(`${topics.length - NAMED} more`)
  return retold(error, `${String((error as Error).message)}: ${REGISTER}, a batch on ${names.join(' or ')} needs it`)
}

function codecOf(error: unknown): string | undefined {
  if (nameOf(error) !== 'KafkaJSNotImplemented') return undefined
  return NO_CODEC.exec(String((error as Error).message))?.[1]
}

function retold(error: unknown, message: string): Error {
  return Object.assign(new Error(message, { cause: error }), { name: nameOf(error) })
}

/** A codec is somebody else's code: what it throws may be anything. */
function nameOf(error: unknown): unknown {
  try {
    return (error as { name?: unknown } | null | undefined)?.name
  } catch {
    return undefined
  }
}
