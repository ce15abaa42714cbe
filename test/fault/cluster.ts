/** The rest of the stage: a load, a watch on the commits, and what stands on the topics at the end. */
import type { Admin, Kafka } from 'kafkajs'
import { clusterOf, withGuardedConnections } from '../../src/adapters/kafkajs/framing'
import { askOnce, type CoordinatorsLike } from '../../src/adapters/kafkajs/stable-offsets'
import { unpackDone } from '../../src/consume/done-beyond'
import type { SeenCommit } from './evidence'
import { encodeWish, wishOf, type Wish } from './payload'
import type { Place } from './ledger'
import { until } from './until'

export interface Load {
  /** Records acknowledged so far. */
  readonly sent: number
  stop(): Promise<void>
}

/** Keeps producing: `batch` records every `everyMs`, keyed and keyless. A batch that is refused is sent again. */
export async function startLoad(
  kafka: Kafka,
  topic: string,
  {
    batch = 10,
    everyMs = 40,
    slowestMs = 12,
    wish = (n) => wishOf(n, slowestMs),
  }: { batch?: number; everyMs?: number; slowestMs?: number; wish?: (n: number) => Wish } = {},
): Promise<Load> {
  const producer = kafka.producer({ allowAutoTopicCreation: false })
  await producer.connect()
  let number = 0
  let sent = 0
  let stopped = false
  let sending = Promise.resolve()
  const send = async (): Promise<void> => {
    const messages = Array.from({ length: batch }, () => {
      const n = number++
      return { key: n % 4 === 0 ? null : `key-${n % 37}`, value: encodeWish(wish(n)) }
    })
    for (;;) {
      try {
        await producer.send({ topic, acks: -1, messages })
        sent += messages.length
        return
      } catch (error) {
        if (stopped) throw error
      }
    }
  }
  let busy = false
  const timer = setInterval(() => {
    if (busy) return
    busy = true
    sending = send().finally(() => {
      busy = false
    })
    sending.catch(() => undefined)
  }, everyMs)
  return {
    get sent() {
      return sent
    },
    async stop() {
      clearInterval(timer)
      await sending
      stopped = true
      await producer.disconnect()
    },
  }
}

export interface CommitWatch {
  /** Every commit that was lower than one before it. kafkajs itself commits -1 and -2 on a cut log: those are left out. */
  readonly falls: readonly string[]
  /**
   * The same on a topic that was made anew just before: a commit of the old log that was on its way, and landed on the new one.
   * The broker knows the topic by its name only; the engine finds out by what it fetches, and says where the new one stands.
   */
  readonly stale: readonly string[]
  /** By `topic/partition`, in order of time: each commit that differed from the one before. */
  readonly history: ReadonlyMap<string, readonly SeenCommit[]>
  readonly looks: number
  /** The topic is made anew: what was committed of it says nothing any more. */
  forget(topic: string): void
  stop(): Promise<void>
}

/** So long after a topic was made anew, ms, the engine may not have found out. */
const REMADE_MS = 30_000
/** More partitions than any topic here has. */
const PARTITIONS = Array.from({ length: 16 }, (_, partition) => partition)

/**
 * Looks at the committed offsets of groups every `everyMs`, so that nothing acknowledged is missing in what it sees: after a
 * change of the coordinator a plain look-up may show less than one before (stable-offsets.ts).
 */
export async function watchCommits(
  kafka: Kafka,
  groups: ReadonlyMap<string, string>,
  everyMs = 50,
): Promise<CommitWatch> {
  const admin = withGuardedConnections(kafka).admin()
  await admin.connect()
  const cluster = clusterOf(admin) as CoordinatorsLike
  const highest = new Map<string, bigint>()
  const remadeAt = new Map<string, number>()
  const falls: string[] = []
  const stale: string[] = []
  const history = new Map<string, SeenCommit[]>()
  const last = new Map<string, string>()
  let looks = 0
  let looking: Promise<void> | undefined
  const lookAt = async (groupId: string, topic: string): Promise<void> => {
    const places = PARTITIONS.map((partition) => ({ topic, partition }))
    const answer = await askOnce(cluster, groupId, places).catch(() => null)
    if (answer === undefined) throw new Error('the broker cannot be asked for stable offsets')
    if (answer?.errorCode !== 0) return
    looks++
    for (const { partition, offset, metadata, errorCode } of answer.offsets) {
      if (errorCode !== 0 || offset < 0n) continue
      const place = `${topic}/${partition}`
      const key = `${groupId} ${place}`
      const before = highest.get(key) ?? -1n
      if (offset < before) {
        const isStale = Date.now() - (remadeAt.get(topic) ?? -Infinity) < REMADE_MS
        ;(isStale ? stale : falls).push(`${key}: from ${before} to ${offset}`)
        if (isStale) history.delete(place)
      }
      highest.set(key, offset)
      const text = `${offset} ${metadata}`
      if (last.get(key) === text) continue
      last.set(key, text)
      const seen = history.get(place) ?? []
      history.set(place, seen)
      seen.push({ at: Date.now(), offset, done: unpackDone(offset, metadata ?? '') ?? [] })
    }
  }
  const look = async (): Promise<void> => {
    for (const [groupId, topic] of groups) await lookAt(groupId, topic)
  }
  await look()
  const timer = setInterval(() => {
    looking ??= look().finally(() => {
      looking = undefined
    })
  }, everyMs)
  return {
    falls,
    stale,
    history,
    get looks() {
      return looks
    },
    forget(topic) {
      remadeAt.set(topic, Date.now())
      for (const key of highest.keys()) if (key.includes(` ${topic}/`)) highest.delete(key)
      for (const key of history.keys()) if (key.startsWith(`${topic}/`)) history.delete(key)
    },
    async stop() {
      clearInterval(timer)
      await looking
      await admin.disconnect()
    },
  }
}

/** Waits until a group has committed all of its topic; returns where it has not, for the message. */
export async function untilCommitted(
  admin: Admin,
  groups: ReadonlyMap<string, string>,
  withinMs: number,
): Promise<void> {
  let behind: string[] = []
  const look = async (): Promise<boolean> => {
    behind = []
    for (const [groupId, topic] of groups) behind.push(...(await lag(admin, groupId, topic)))
    return behind.length === 0
  }
  await until('every group has committed all of its topic', look, withinMs).catch((error: Error) => {
    throw new Error(`${error.message}: ${behind.join('; ')}`)
  })
}

async function lag(admin: Admin, groupId: string, topic: string): Promise<string[]> {
  const ends = new Map((await admin.fetchTopicOffsets(topic)).map(({ partition, high }) => [partition, high]))
  const [found] = await admin.fetchOffsets({ groupId, topics: [topic] })
  return (
    (found?.partitions ?? [])
      // Made anew and still empty: there is nothing to commit, and what was committed went with the old one.
      .filter(
        ({ partition, offset }) =>
          offset !== ends.get(partition) && !(ends.get(partition) === '0' && offset.startsWith('-')),
      )
      .map(({ partition, offset }) => `${groupId} ${topic}/${partition}: ${offset} of ${ends.get(partition)}`)
  )
}

/** The place of every record of a topic without gaps. */
export async function placesOf(admin: Admin, topic: string): Promise<Place[]> {
  const ranges = await admin.fetchTopicOffsets(topic)
  return ranges.flatMap(({ partition, low, high }) =>
    Array.from(
      { length: Number(BigInt(high) - BigInt(low)) },
      (_, i) => `${topic}/${partition}@${BigInt(low) + BigInt(i)}`,
    ),
  )
}

/** The first place of every copy on a dead letter topic. */
export async function deadLettersOf(kafka: Kafka, admin: Admin, topic: string, groupId: string): Promise<Place[]> {
  const expected = (await placesOf(admin, topic)).length
  if (expected === 0) return []
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 100 })
  await consumer.connect()
  try {
    await consumer.subscribe({ topic, fromBeginning: true })
    const places: Place[] = []
    await consumer.run({
      eachMessage: async ({ message: { headers = {} } }) => {
        const text = (name: string): string => String(headers[`x-original-${name}`])
        places.push(`${text('topic')}/${text('partition')}@${text('offset')}`)
      },
    })
    await until(`all ${expected} dead letters are read`, () => places.length >= expected)
    return places
  } finally {
    await consumer.disconnect()
  }
}
