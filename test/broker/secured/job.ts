/** What a consumer is for, on topics and a group of its own: a record that fails for good goes over two waits to the DLQ. */
import { Kafka, logLevel, type KafkaConfig } from 'kafkajs'
import { vi } from 'vitest'
import { createResilientConsumer, memoryHooks, RetryableError, type ResilientConsumer } from '../../../src'
import { accessOf, buildTopology, type Access, type Topology } from '../../../src/topology'
import type { SecuredBroker } from '../../helpers/broker-secured'
import { unique } from '../../helpers/broker-shared'

const SCHEDULE = ['100ms', '200ms']
/** Patience of what a test waits for, ms. */
const LIMIT = 40_000

export interface Job {
  readonly topology: Topology
  /** All that it needs, one by one. */
  readonly access: readonly Access[]
  readonly consumer: ResilientConsumer
  readonly hooks: ReturnType<typeof memoryHooks>
  /** Values of the handler calls. */
  readonly calls: string[]
  produce(...values: string[]): Promise<void>
  /** Everything that was said to anybody so far: by events, and by health. */
  said(): string
  until(condition: () => boolean | Promise<boolean>): Promise<void>
  /** Waits for so many records on the dead letter topic, or more: a crash may have a record handled twice. */
  untilDead(count: number): Promise<void>
}

export interface JobOptions {
  readonly topicSetup?: 'verify' | 'create' | 'warn'
  readonly [option: string]: unknown
}

/** Makes the topics (`create`: the main topic only). Handlers fail for values that begin with `bad`. */
export async function openJob(broker: SecuredBroker, client: KafkaConfig, options: JobOptions = {}): Promise<Job> {
  const { topicSetup = 'verify' } = options
  const [main, groupId] = [unique('orders'), unique('billing')]
  const topology = buildTopology({ topics: [main], groupId, delays: [100, 200] })
  const made = topology.allTopics().filter(({ role }) => topicSetup !== 'create' || role === 'main')
  await broker.admin.createTopics({
    waitForLeaders: true,
    topics: made.map(({ topic }) => ({ topic, numPartitions: 1, configEntries: SETTINGS })),
  })
  const hooks = memoryHooks()
  const calls: string[] = []
  const consumer = createResilientConsumer({
    kafka: new Kafka(client),
    groupId,
    topic: main,
    schedule: SCHEDULE,
    commitInterval: '20ms',
    heartbeatInterval: '200ms',
    sessionTimeout: '6s',
    logger: SILENT,
    hooks,
    handler: ({ message }) => {
      const value = String(message.value)
      calls.push(value)
      if (value.startsWith('bad')) throw new RetryableError('a bad order')
    },
    ...options,
  })
  const until = (condition: () => boolean | Promise<boolean>): Promise<void> =>
    vi.waitFor(
      async () => {
        if (!(await condition())) throw new Error(`it never came; said: ${said()}`)
      },
      { timeout: LIMIT, interval: 50 },
    )
  const said = (): string =>
    [
      ...hooks.events().map((event) => JSON.stringify(event)),
      ...consumer.health().problems.map((problem) => `health: ${problem}`),
    ].join('\n')
  return {
    topology,
    access: accessOf(topology, 'consumer'),
    consumer,
    hooks,
    calls,
    async produce(...values) {
      const producer = broker.superKafka.producer({ createPartitioner: () => () => 0 })
      await producer.connect()
      await producer.send({ topic: main, messages: values.map((value) => ({ value })) })
      await producer.disconnect()
    },
    said,
    until,
    untilDead: (count) =>
      until(async () => {
        const [end] = await broker.admin.fetchTopicOffsets(topology.deadLetterTopic(main))
        return Number(end?.high) >= count
      }),
  }
}

/** Which of the list a consumer with this `topicSetup` and `delivery` needs. */
export function needed(
  access: readonly Access[],
  topicSetup: 'verify' | 'create' | 'warn',
  delivery: 'at-least-once' | 'exactly-once' = 'at-least-once',
): Access[] {
  return access.filter(
    ({ when }) =>
      when === undefined ||
      (when === 'verify' && topicSetup !== 'warn') ||
      (when === 'create' && topicSetup === when) ||
      when === delivery,
  )
}

const SETTINGS = [{ name: 'retention.ms', value: '604800000' }]
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** Few tries: what these tests look at does not mend itself. */
export const quick = (client: KafkaConfig): KafkaConfig => ({
  logLevel: logLevel.NOTHING,
  requestTimeout: 5_000,
  retry: { retries: 2, initialRetryTime: 50, maxRetryTime: 200 },
  ...client,
})
