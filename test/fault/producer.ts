/**
 * Produces steadily, and knows what it has produced: each record has an id; `acknowledged` are on the topic for certain, of
 * `uncertain` ones the answer was lost, and they may stand there not at all, once, or (since they are sent again) twice.
 */
import type { Kafka } from 'kafkajs'
import { until } from './until'
import { encodeWish, wishOf, type Wish } from './payload'

export interface Production {
  /** Ids, with the time of the acknowledgement. */
  readonly acknowledged: ReadonlyMap<string, number>
  readonly uncertain: ReadonlySet<string>
  readonly sent: number
  /** Also for records of a fault's own, whatever they look like. Sent until they are acknowledged, as another fault may have a node away. */
  send(
    messages: readonly { key: string | Buffer | null; value: string | Buffer | null; partition?: number }[],
  ): Promise<void>
  stop(): Promise<void>
}

export interface Pace {
  readonly batch: number
  readonly everyMs: number
  /** The slowest handler call of the ordinary mix; one record in a hundred is slow. */
  readonly slowestMs: number
  readonly slowMs: number
}

export const PACE: Pace = { batch: 5, everyMs: 40, slowestMs: 12, slowMs: 400 }

/** The ordinary mix, and beside it some that are slow and some that send. */
export function mixed(n: number, { slowestMs, slowMs }: Pace): Wish {
  const wish = wishOf(n, slowestMs)
  if (n % 101 === 50) return { ...wish, ms: slowMs }
  return n % 10 === 5 ? { ...wish, send: true } : wish
}

const RETRY_AFTER = 200

export async function startProduction(
  kafka: Kafka,
  topic: string,
  partitions: number,
  pace: Pace = PACE,
): Promise<Production> {
  // One try: kafkajs sends what is left of a request again without those whose leader has moved to a node that had answered,
  // and says that all is well. So each record has its partition from here, and each partition must be in the answer.
  const producer = kafka.producer({ allowAutoTopicCreation: false, retry: { retries: 0 } })
  await producer.connect()
  const acknowledged = new Map<string, number>()
  const uncertain = new Set<string>()
  let number = 0
  let stopping = false
  let wake = (): void => undefined

  const one = async (): Promise<void> => {
    const wishes = Array.from({ length: pace.batch }, () => mixed(number++, pace))
    const messages = wishes.map((wish, i) => {
      const n = number - wishes.length + i
      const keyless = n % 4 === 0
      return {
        key: keyless ? null : `key-${n % 37}`,
        value: encodeWish(wish),
        partition: (keyless ? n / 4 : n % 37) % partitions,
      }
    })
    for (;;) {
      try {
        const answer = await producer.send({ topic, acks: -1, messages })
        const there = new Set(answer.map(({ partition }) => partition))
        if (messages.some(({ partition }) => !there.has(partition))) throw new Error('a partition is not in the answer')
        const at = Date.now()
        for (const { id } of wishes) acknowledged.set(id, at)
        return
      } catch {
        for (const { id } of wishes) uncertain.add(id)
        if (stopping) return
        await rest(RETRY_AFTER)
      }
    }
  }
  const rest = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  const all = (async () => {
    while (!stopping) {
      const startedAt = Date.now()
      await one()
      const left = pace.everyMs - (Date.now() - startedAt)
      if (left > 0 && !stopping) await rest(left)
    }
  })()
  return {
    acknowledged,
    uncertain,
    get sent() {
      return acknowledged.size
    },
    async send(messages) {
      let why: unknown
      const sent = async (): Promise<boolean> => {
        try {
          await producer.send({ topic, acks: -1, messages: [...messages] })
          return true
        } catch (error) {
          why = error
          return false
        }
      }
      await until('the records of a fault are acknowledged', sent, 60_000).catch((error: Error) => {
        throw new Error(`${error.message}: ${String(why)}`)
      })
    },
    async stop() {
      stopping = true
      wake()
      await all
      await producer.disconnect()
    },
  }
}
