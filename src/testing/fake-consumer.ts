/**
 * `kafka.consumer()`: kafkajs's consumer over the fake broker.
 *
 * made -> (run) -> joining -> running -> stop -> made
 *                                     -> crash -> disconnected -> CRASH -> (restart, after a virtual wait) -> joining
 * As in kafkajs a stop during the first join does not reach it, and a disconnect during a crash's own disconnect does
 * not keep the restart away.
 */
import type { Timer } from '../ports'
import { Cluster, type ClientContext } from './cluster'
import { ConsumerGroup } from './consumer-group'
import { KafkaJSNonRetriableError, nameOf } from './errors'
import { CONSUMER_EVENTS, Instrumentation, type On } from './events'
import { createRetrier, DEFAULT_RETRY } from './retrier'
import { silentKafkaLogger } from './logger'
import { roundRobin } from './member-protocol'
import { Long, toBigInt } from './offset-manager'
import { Runner } from './runner'
import type {
  FakeConsumerConfig,
  FakeLogger,
  GroupDescription,
  RunConfig,
  TopicOffsets,
  TopicPartitions,
  TopicSelection,
} from './types'
import { describeGroup } from './describe-group'

const { CONNECT, DISCONNECT, STOP, CRASH } = CONSUMER_EVENTS

export interface FakeConsumer {
  connect(): Promise<void>
  disconnect(): Promise<void>
  subscribe(subscription: {
    topics?: (string | RegExp)[]
    topic?: string | RegExp
    fromBeginning?: boolean
  }): Promise<void>
  run(config?: RunConfig): Promise<void>
  stop(): Promise<void>
  commitOffsets(
    topicPartitions: { topic: string; partition: number; offset: string; metadata?: string | null }[],
  ): Promise<void>
  seek(position: { topic: string; partition: number; offset: string }): void
  pause(topics: TopicSelection[]): void
  paused(): TopicPartitions[]
  resume(topics: TopicSelection[]): void
  describeGroup(): Promise<GroupDescription>
  on: On
  logger(): FakeLogger
  readonly events: typeof CONSUMER_EVENTS
}

/** A consumer as the fault controls see it. */
export interface LiveConsumer {
  readonly groupId: string
  memberId(): string | null
  crash(error: Error): boolean
  /** It has died, and has neither started again nor been stopped by its owner since. */
  crashedBy(): Error | undefined
  /** What it has subscribed to. */
  topics(): string[]
  /** Names of the assigners that it offers. */
  readonly assigners: readonly string[]
  /** What it would fetch next of a partition; undefined where that is not known (yet). */
  position(topic: string, partition: number): bigint | undefined
  isPaused(topic: string, partition: number): boolean
}

/** Only Errors, and only once: what was retriable all the way down to its cause starts again. */
function isRetriable(e: Error): boolean {
  if (nameOf(e) === 'KafkaJSNumberOfRetriesExceeded') return true
  let cause: unknown = e
  while ((cause as Error).cause) cause = (cause as Error).cause
  return (cause as { retriable?: unknown }).retriable === true
}

const NOT_RUN = 'Consumer group was not initialized, consumer#run must be called first'
const refuse = (message: string): KafkaJSNonRetriableError => new KafkaJSNonRetriableError(message)

function checkedOffset(offset: unknown): bigint {
  try {
    return toBigInt(offset)
  } catch {
    throw refuse(`Invalid offset, expected a long received ${String(offset)}`)
  }
}

function checkSelection(topics: readonly TopicSelection[], verb: 'pause' | 'resume'): void {
  for (const one of topics as readonly (TopicSelection | undefined)[]) {
    if (!one?.topic) throw refuse(`Invalid topic ${(one?.topic ?? one) as string}`)
    const { partitions } = one
    if (partitions !== undefined && (!Array.isArray(partitions) || partitions.some(isNaN))) {
      throw refuse(`Array of valid partitions required to ${verb} specific partitions instead of ${String(partitions)}`)
    }
  }
}

export function createFakeConsumer(
  context: ClientContext,
  config: FakeConsumerConfig,
  register: (consumer: LiveConsumer) => void,
): FakeConsumer {
  const { groupId, metadataMaxAge = 300_000, partitionAssigners = [roundRobin] } = config
  const { sessionTimeout = 30_000, rebalanceTimeout = 60_000, heartbeatInterval = 3000 } = config
  const { maxBytesPerPartition = 1_048_576, maxBytes = 10_485_760, maxWaitTimeInMs = 5000 } = config
  const retry = { ...context.retry, ...(config.retry ?? { retries: 5 }) }
  if (!groupId) throw refuse('Consumer groupId must be a non-empty string.')

  const { clock } = context.broker
  const cluster = new Cluster(context, metadataMaxAge)
  cluster.readUncommitted = config.readUncommitted ?? false
  const events = new Instrumentation(clock, 'consumer', CONSUMER_EVENTS)
  const logger = silentKafkaLogger()
  const assigners = partitionAssigners.map((create) => create({ groupId, logger, cluster }))
  if (heartbeatInterval >= sessionTimeout) {
    throw refuse(
      `Consumer heartbeatInterval (${heartbeatInterval}) must be lower than sessionTimeout (${sessionTimeout}). ` +
        'It is recommended to set heartbeatInterval to approximately a third of the sessionTimeout.',
    )
  }

  const topics: Record<string, { fromBeginning?: boolean }> = {}
  let group: ConsumerGroup | undefined
  let runner: Runner | undefined
  let restart: Timer | undefined
  let stopping: Promise<void> | undefined
  let crashedBy: Error | undefined

  const live = (): ConsumerGroup => {
    if (group === undefined) throw refuse(NOT_RUN)
    return group
  }

  async function stopOnce(): Promise<void> {
    if (runner !== undefined) {
      const mine = group
      await runner.stop()
      mine?.dispose()
      runner = undefined
      group = undefined
      events.emit(STOP)
    }
    restart?.cancel()
  }

  const stop = (): Promise<void> => (stopping ??= stopOnce().finally(() => (stopping = undefined)))

  async function disconnect(): Promise<void> {
    await stop()
    await cluster.disconnect()
    events.emit(DISCONNECT)
  }

  async function run(settings: RunConfig = {}): Promise<void> {
    const { autoCommit = true, autoCommitInterval = null, autoCommitThreshold = null } = settings
    const { eachBatchAutoResolve = true, partitionsConsumedConcurrently: concurrency = 1 } = settings
    const { eachBatch = null, eachMessage = null } = settings
    if (group !== undefined) return

    const start = async (): Promise<void> => {
      crashedBy = undefined
      group = new ConsumerGroup({
        cluster,
        events,
        groupId,
        topics: Object.keys(topics),
        topicConfigurations: topics,
        assigners,
        retry,
        sessionTimeout,
        rebalanceTimeout,
        maxBytesPerPartition,
        maxBytes,
        maxWaitTime: maxWaitTimeInMs,
        autoCommit,
        autoCommitInterval,
        autoCommitThreshold,
      })
      runner = new Runner({
        clock,
        group,
        events,
        heartbeatInterval,
        retry,
        autoCommit,
        eachBatchAutoResolve,
        concurrency,
        maxWaitTime: maxWaitTimeInMs,
        eachBatch,
        eachMessage,
        onCrash,
      })
      await runner.start()
    }

    const onCrash = async (e: Error): Promise<void> => {
      if (nameOf(e) === 'KafkaJSConnectionClosedError') cluster.removeBroker(e as { port?: number })
      await disconnect()
      crashedBy = e
      const wanted = async (): Promise<boolean> => retry.restartOnFailure?.(e).catch(() => true) ?? true
      const shouldRestart = isRetriable(e) && (await wanted())
      events.emit(CRASH, { error: e, groupId, restart: shouldRestart })
      if (!shouldRestart) return
      const { retryTime } = e as { retryTime?: number }
      const wait = retryTime || retry.initialRetryTime || DEFAULT_RETRY.initialRetryTime
      restart = clock.after(wait, () => void start())
    }

    // Not in the course of whatever handler made this call: its loop lives on after that.
    await clock.detached(start)
  }

  register({
    groupId,
    memberId: () => group?.memberId ?? null,
    crash: (error) => {
      group?.crashWith(error)
      return group !== undefined
    },
    crashedBy: () => crashedBy,
    topics: () => Object.keys(topics),
    assigners: assigners.map(({ name }) => name),
    position: (topic, partition) => group?.position(topic, partition),
    isPaused: (topic, partition) => group?.isPaused(topic, partition) ?? false,
  })

  return {
    async connect() {
      await cluster.connect()
      events.emit(CONNECT)
    },
    disconnect: () => {
      crashedBy = undefined
      return disconnect()
    },
    async subscribe({ topic, topics: list, fromBeginning = false }) {
      if (group !== undefined) throw refuse('Cannot subscribe to topic while consumer is running')
      if (!topic && !list) throw refuse('Missing required argument "topics"')
      if (list != null && !Array.isArray(list)) throw refuse('Argument "topics" must be an array')
      const subscriptions = list ?? [topic]
      const names: string[] = []
      for (const one of subscriptions) {
        if (typeof one !== 'string' && !(one instanceof RegExp)) {
          throw refuse(`Invalid topic ${String(one)} (${typeof one}), the topic name has to be a String or a RegExp`)
        }
      }
      const some = subscriptions.some((one) => one instanceof RegExp)
      const all = some ? [...(await cluster.fetchMetadata([])).keys()] : []
      for (const one of subscriptions) {
        if (one instanceof RegExp) names.push(...all.filter((name) => one.test(name)))
        else names.push(one as string)
      }
      for (const name of names) topics[name] = { fromBeginning }
      await cluster.addMultipleTargetTopics(names)
    },
    run,
    stop: () => {
      crashedBy = undefined
      return stop()
    },
    async commitOffsets(topicPartitions = []) {
      const byTopic = new Map<string, TopicOffsets['partitions']>()
      for (const { topic, partition, offset, metadata = null } of topicPartitions) {
        if (!topic) throw refuse(`Invalid topic ${topic}`)
        if (isNaN(partition)) throw refuse(`Invalid partition, expected a number received ${partition}`)
        const value = checkedOffset(offset)
        if (value < 0n) throw refuse('Offset must not be a negative number')
        if (metadata !== null && typeof metadata !== 'string') {
          throw refuse(`Invalid offset metadata, expected string or null, received ${String(metadata)}`)
        }
        const entry = { partition, offset: new Long(value) as unknown as string, metadata }
        byTopic.set(topic, [...(byTopic.get(topic) ?? []), entry])
      }
      live()
      await runner?.commitOffsets({ topics: [...byTopic].map(([topic, partitions]) => ({ topic, partitions })) })
    },
    seek({ topic, partition, offset }) {
      if (!topic) throw refuse(`Invalid topic ${topic}`)
      if (isNaN(partition)) throw refuse(`Invalid partition, expected a number received ${partition}`)
      const value = checkedOffset(offset)
      if (value < 0n && value !== -1n && value !== -2n) throw refuse('Offset must not be a negative number')
      live().seek(topic, partition, String(value))
    },
    pause(selection = []) {
      checkSelection(selection, 'pause')
      live().pause(selection)
    },
    paused: () => group?.paused() ?? [],
    resume(selection = []) {
      checkSelection(selection, 'resume')
      live().resume(selection)
    },
    describeGroup: () => createRetrier(clock, retry)(() => describeGroup(cluster, groupId)),
    on: events.on,
    logger: () => logger,
    events: CONSUMER_EVENTS,
  }
}
