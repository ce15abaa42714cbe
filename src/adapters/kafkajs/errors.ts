/** How deep kafkajs nests what it wraps (retries around protocol errors). */
const DEPTH = 5

/** The first `type` (Kafka's name of a protocol error) on the error or on what it wraps. */
export function errorType(error: unknown): string | undefined {
  let at = error as { type?: unknown; cause?: unknown } | null | undefined
  for (let i = 0; i < DEPTH && typeof at === 'object' && at !== null; i++) {
    if (typeof at.type === 'string') return at.type
    at = at.cause as typeof at
  }
  return undefined
}

/** kafkajs's own words for a codec of its table that nobody has registered. */
const NO_CODEC = /^(\S+) compression not implemented$/
/** So many topics are named: the whole must fit a log line. */
const NAMED = 3

/**
 * What to tell of a crash. For a batch in a codec that kafkajs does not have, its error says neither where the batch stands
 * nor what to do; it does not know the partition either, since the whole answer to a fetch is thrown away.
 */
export function asCrash(error: unknown, topics: readonly string[]): unknown {
  const { name, message } = (error ?? {}) as { name?: unknown; message?: unknown }
  const codec = name === 'KafkaJSNotImplemented' ? NO_CODEC.exec(String(message))?.[1] : undefined
  if (codec === undefined) return error
  const names = topics.slice(0, NAMED).map((topic) => `'${topic}'`)
  if (topics.length > NAMED) names.push(`${topics.length - NAMED} more`)
  const told = new Error(
    `${String(message)}: register it in kafkajs's CompressionCodecs (docs/operations.md), a batch on ${names.join(' or ')} needs it`,
    { cause: error },
  )
  return Object.assign(told, { name })
}
