import type { KafkaClient } from '../../src/config'

/** A client whose consumers can be made to crash at their next batch, as kafkajs itself does it. */
export interface CrashingClient {
  readonly client: KafkaClient
  /** The error decides: kafkajs restarts by itself after a retriable one, and never after a TypeError. */
  crashNext(error: Error, times?: number): void
}

/** kafkajs gives it up at once, and finds behind it a reason to start again. */
export function passingFault(): Error {
  const cause = Object.assign(new Error('a passing fault'), { retriable: true })
  return Object.assign(new Error('a fault', { cause }), { retriable: false })
}

/** kafkajs gives it up at once, and for good. */
export const lastingFault = (): Error => new TypeError('a lasting fault')

export function crashing(client: KafkaClient): CrashingClient {
  let left = 0
  let error: Error | undefined
  const kafka = client as any
  const consumer = (config: unknown): unknown => {
    const made = kafka.consumer(config)
    const run = (options: any): Promise<void> =>
      made.run({
        ...options,
        eachBatch: async (payload: unknown) => {
          if (left > 0) {
            left--
            throw error!
          }
          await options.eachBatch(payload)
        },
      })
    return new Proxy(made, { get: (one, name) => (name === 'run' ? run : Reflect.get(one, name)) })
  }
  return {
    client: new Proxy(kafka, { get: (one, name) => (name === 'consumer' ? consumer : Reflect.get(one, name)) }),
    crashNext(next, times = 1) {
      error = next
      left = times
    },
  }
}
