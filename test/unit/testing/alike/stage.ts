/**
 * Stories told twice, to kafkajs on a real broker and to the fake, whose traces must be the same. What kafkajs did is
 * kept in recorded.json, so that the fake is held to it on a machine without a broker too:
 *
 *   alike.test.ts        the fake does what was recorded
 *   alike.real.test.ts   kafkajs on a real broker (still) does what was recorded; RECORD=1 writes it anew
 */
import type { Consumer, ConsumerConfig, Kafka, RetryOptions } from 'kafkajs'

export interface Stage {
  readonly kafka: Kafka
  /** Another client of the same broker, as another process has it. */
  other(options?: { retry?: RetryOptions }): Kafka
  topic(name?: string): string
  group(name?: string): string
  create(name: string, partitions?: number, config?: Record<string, string>): Promise<void>
  /** The next requests of this kind are done by the broker, and their answers are lost with the connection. */
  loseAnswers(kind: LosableKind, times?: number): void
  /** Lets time pass: real on one stage, virtual on the other. */
  pass(ms: number): Promise<void>
  /** ms, real on one stage, virtual on the other. */
  now(): number
  until(condition: () => boolean): Promise<void>
  /** For handlers: the same, without passing time for others. */
  sleep(ms: number): Promise<void>
  /** For handlers: waits for something that the story itself will do. */
  gate(promise: Promise<void>): Promise<void>
  /** Something the story awaits though time has to pass for it. */
  eventually<T>(promise: Promise<T>): Promise<T>
  note(...seen: unknown[]): void
}

/** Kinds of requests whose answers a story can lose, by the fake's names. */
export const API_KEYS = { publish: 0, addPartitions: 24, txnOffsets: 28, endTransaction: 26 } as const

export type LosableKind = keyof typeof API_KEYS

/** For topics with records of old: a broker that looks after retention would delete them under the story. */
export const FOR_EVER = { 'retention.ms': '-1' }

/** `slowPolls`: it is about the time that kafkajs's polls take, so the fake's take it too. */
export type Story = ((stage: Stage) => Promise<void>) & { slowPolls?: boolean }

/** Poll often, so that a real stage is quick. */
export const consumerOf = (stage: Stage, config: Partial<ConsumerConfig> = {}, kafka = stage.kafka): Consumer =>
  kafka.consumer({ groupId: stage.group(), maxWaitTimeInMs: 100, ...config })

/** What came of it: the value, or the error. */
export async function outcome(act: Promise<unknown> | (() => unknown)): Promise<unknown> {
  try {
    return { value: await (typeof act === 'function' ? act() : act) }
  } catch (e) {
    return e
  }
}

type EventKey = keyof Consumer['events']

const QUIET: EventKey[] = ['HEARTBEAT', 'FETCH', 'FETCH_START', 'REQUEST', 'REQUEST_TIMEOUT', 'REQUEST_QUEUE_SIZE']

/** Notes the events of a consumer, but for those whose number depends on time. */
export function noteEvents(stage: Pick<Stage, 'note'>, consumer: Consumer, prefix = '', skip: EventKey[] = []): void {
  for (const [key, name] of Object.entries(consumer.events) as [EventKey, string][]) {
    if (QUIET.includes(key) || skip.includes(key)) continue
    consumer.on(name as Consumer['events']['CONNECT'], (event) => {
      const { duration: _, ...payload } = { ...(event.payload as unknown as Record<string, unknown> | null) }
      stage.note(`${prefix}${event.type}`, typeof event.id, typeof event.timestamp, payload)
    })
  }
}

export async function produce(
  stage: Stage,
  messages: { value: string | null; key?: string; partition?: number; headers?: any; timestamp?: string }[],
  topic = stage.topic(),
): Promise<unknown> {
  const producer = stage.kafka.producer()
  await producer.connect()
  const answer = await producer.send({ topic, messages })
  await producer.disconnect()
  return answer
}

/** Writes a transaction of these values, and so a marker behind them, to partition 0. */
export async function transact(stage: Stage, topic: string, values: string[]): Promise<void> {
  const producer = stage.kafka.producer({
    transactionalId: stage.group('transact'),
    idempotent: true,
    maxInFlightRequests: 1,
  })
  await producer.connect()
  const transaction = await producer.transaction()
  await transaction.send({ topic, messages: values.map((value) => ({ value, partition: 0 })) })
  await transaction.commit()
  await producer.disconnect()
}

export async function committed(stage: Stage, topics = [stage.topic()], groupId = stage.group()): Promise<unknown> {
  const admin = stage.kafka.admin()
  await admin.connect()
  await admin.fetchTopicMetadata({ topics })
  const offsets = await admin.fetchOffsets({ groupId, topics })
  await admin.disconnect()
  return offsets.map(({ topic, partitions }) => ({ topic, partitions: byPartition(partitions) }))
}

export const byPartition = <T extends { partition: number }>(list: T[]): T[] =>
  [...list].sort((a, b) => a.partition - b.partition)

export const numbered = (count: number): { value: string }[] =>
  Array.from({ length: count }, (_, i) => ({ value: String(i) }))

/** A trace must be the same on both stages, so names, ids and bytes are made so. */
export function plain(value: unknown, prefix: string): unknown {
  if (value === undefined) return null
  if (typeof value === 'string') return value.replaceAll(prefix, '').replace(/kafkajs-[0-9a-f-]{8,}/g, '<member>')
  if (typeof value === 'function') return `<function ${value.name}>`
  if (typeof value !== 'object' || value === null) return value
  if (Buffer.isBuffer(value)) return `<bytes ${value.toString('latin1')}>`
  if (Array.isArray(value)) return value.map((one) => plain(one, prefix))
  const long = (value as { value?: unknown }).value
  if (typeof long === 'bigint') return `<Long ${long}>`
  if (value instanceof Error) {
    const { name, message, cause } = value
    const { type, code, retriable, retryCount, errors, groups, partitions } = value as unknown as Record<
      string,
      unknown
    >
    const known = { error: name, message, type, code, retriable, retryCount, errors, groups, partitions }
    const fields = { ...known, cause: cause instanceof Error ? `${cause.name}: ${cause.message}` : undefined }
    return plain(Object.fromEntries(Object.entries(fields).filter(([, field]) => field !== undefined)), prefix)
  }
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key.replaceAll(prefix, ''), plain(one, prefix)]))
}
