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
