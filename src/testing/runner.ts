/**
 * kafkajs's loop: fetch, hand over, heartbeat, and what an error does to it.
 *
 * not running -> (joined) -> running: fetch from each node -> work on its batches -> fetch ... -> stopped, or crashed
 * An error of a fetch or a handler stops the fetching, waits for what runs, and is tried again by one retrier, whose
 * count is never set back but by a rejoin; when it gives up (or at once, for what looks like a bug) the loop crashes.
 *
 * Must never happen: a handler started after `stop`.
 */
import type { Batch } from './batch'
import type { InnerClock } from './clock'
import type { ConsumerGroup } from './consumer-group'
import { isRebalancing, nameOf, typeOf } from './errors'
import { CONSUMER_EVENTS, type Instrumentation } from './events'
import { createRetrier, type Retrier, type RetryOptions } from './retrier'
import type { EachBatchPayload, EachMessagePayload, TopicOffsets } from './types'
import { FetchManager } from './fetch-manager'
import type { Timer } from '../ports'

const { FETCH, FETCH_START, START_BATCH_PROCESS, END_BATCH_PROCESS, REBALANCING } = CONSUMER_EVENTS

/** So often the same batch is handed over without any time passing before the clock calls it a circle. */
const CIRCLES = 1000

export interface RunnerSettings {
  readonly clock: InnerClock
  readonly group: ConsumerGroup
  readonly events: Instrumentation
  readonly heartbeatInterval: number
  readonly retry: RetryOptions
  readonly autoCommit: boolean
  readonly eachBatchAutoResolve: boolean
  readonly concurrency: number
  readonly maxWaitTime: number
  readonly eachBatch: ((payload: EachBatchPayload) => Promise<void>) | null
  readonly eachMessage: ((payload: EachMessagePayload) => Promise<void>) | null
  readonly onCrash: (error: Error) => Promise<void>
}

export class Runner {
  private running = false
  private consuming = false
  private handlers = 0
  private readonly fetches: FetchManager<Batch>
  private whenConsumed: (() => void)[] = []
  private readonly retrier: Retrier
  /** By partition: the batch last handed over, and how often. */
  private readonly last = new Map<string, { key: string; times: number }>()

  constructor(private readonly settings: RunnerSettings) {
    const { clock, retry, group, concurrency } = settings
    this.retrier = createRetrier(clock, retry)
    this.fetches = new FetchManager({
      concurrency,
      nodeIds: () => group.nodeIds(),
      fetch: (node) => this.fetch(node),
      handle: (batch) => this.handleBatch(batch),
      hurry: () => group.stopPolling(),
    })
  }

  async start(): Promise<void> {
    if (this.running) return
    const { group, onCrash } = this.settings
    try {
      await group.connect()
      await group.joinAndSync()
    } catch (e) {
      return onCrash(e as Error)
    }
    this.running = true
    this.consume()
  }

  /** Before the first join is over there is nothing that it stops, as in kafkajs: the join goes on. */
  async stop(): Promise<void> {
    if (!this.running) return
    this.running = false
    try {
      await this.fetches.stop()
      if (this.consuming) await new Promise<void>((resolve) => void this.whenConsumed.push(resolve))
      await this.settings.group.leave()
    } catch {
      // kafkajs swallows what goes wrong here, a leave that did not arrive included.
    }
  }

  /** `consumer.commitOffsets`: nothing where it does not run; tried again, under whatever generation then is. */
  async commitOffsets(offsets: { topics: TopicOffsets[] }): Promise<void> {
    if (!this.running) return
    return this.retrier(async () => {
      try {
        await this.settings.group.commitOffsets(offsets)
      } catch (e) {
        if (this.running) throw e
      }
    })
  }

  private consume(): void {
    if (!this.running) {
      this.consumed()
      return
    }
    this.consuming = true
    this.retrier(async (bail) => {
      if (!this.running) return
      try {
        await this.fetches.start()
      } catch (e) {
        if (this.settings.group.crashed) bail(e)
        const { group, events } = this.settings
        if (isRebalancing(e)) {
          events.emit(REBALANCING, { groupId: group.groupId, memberId: group.memberId })
          await group.joinAndSync()
          return
        }
        if (typeOf(e) === 'UNKNOWN_MEMBER_ID') {
          group.forgetMember()
          await group.joinAndSync()
          return
        }
        if (nameOf(e) === 'KafkaJSNotImplemented' || nameOf(e) === 'KafkaJSNoBrokerAvailableError') bail(e)
        throw e
      }
    }).then(
      () => this.consume(),
      (e: Error) => {
        void this.settings.onCrash(e)
        this.running = false
        this.consumed()
      },
    )
  }

  private consumed(): void {
    this.consuming = false
    for (const resolve of this.whenConsumed.splice(0)) resolve()
  }

  private async fetch(node: number): Promise<Batch[]> {
    if (!this.running) return []
    const { events, group, clock } = this.settings
    const start = clock.now()
    // Text, whatever kafkajs's types say.
    const nodeId = String(node)
    events.emit(FETCH_START, { nodeId })
    const batches = await group.fetch(node)
    events.emit(FETCH, { numberOfBatches: 0, duration: clock.now() - start, nodeId })
    if (batches.length === 0) await this.heartbeat()
    return batches
  }

  private async handleBatch(batch: Batch): Promise<void> {
    if (!this.running) return
    const { events, group, clock, autoCommit } = this.settings
    const start = clock.now()
    const payload = {
      topic: batch.topic,
      partition: batch.partition,
      highWatermark: batch.highWatermark,
      offsetLag: batch.offsetLag(),
      offsetLagLow: batch.offsetLagLow(),
      batchSize: batch.messages.length,
      firstOffset: batch.firstOffset(),
      lastOffset: batch.lastOffset(),
    }
    if (batch.isEmptyDueToFiltering()) {
      events.emit(START_BATCH_PROCESS, payload)
      group.resolveOffset(batch.topic, batch.partition, batch.lastOffset())
      if (autoCommit) await group.commitOffsetsIfNecessary()
      events.emit(END_BATCH_PROCESS, { ...payload, duration: clock.now() - start })
      await this.heartbeat()
      return
    }
    if (batch.isEmpty()) {
      await this.heartbeat()
      return
    }
    this.lookForCircles(batch)
    events.emit(START_BATCH_PROCESS, payload)
    if (this.settings.eachMessage) await this.processEachMessage(batch, this.settings.eachMessage)
    else if (this.settings.eachBatch) await this.processEachBatch(batch, this.settings.eachBatch)
    events.emit(END_BATCH_PROCESS, { ...payload, duration: clock.now() - start })
    if (autoCommit) await group.commitOffsets()
    await this.heartbeat()
  }

  private async processEachMessage(batch: Batch, eachMessage: (payload: EachMessagePayload) => Promise<void>) {
    const { group, autoCommit } = this.settings
    const { topic, partition } = batch
    for (const message of batch.messages) {
      if (!this.running || group.hasSeekOffset(topic, partition)) break
      try {
        await this.call('eachMessage', batch, message.offset, () =>
          eachMessage({
            topic,
            partition,
            message,
            heartbeat: () => this.heartbeat(),
            pause: () => this.pause(topic, partition),
          }),
        )
      } catch (e) {
        await this.afterError(e)
      }
      group.resolveOffset(topic, partition, message.offset)
      await this.heartbeat()
      if (autoCommit) await group.commitOffsetsIfNecessary()
      if (group.isPaused(topic, partition)) break
    }
  }

  private async processEachBatch(batch: Batch, eachBatch: (payload: EachBatchPayload) => Promise<void>) {
    const { group, eachBatchAutoResolve } = this.settings
    const { topic, partition } = batch
    const last = batch.messages.at(-1)?.offset
    try {
      await this.call('eachBatch', batch, batch.firstOffset() ?? batch.fetchedOffset, () =>
        eachBatch({
          batch,
          // The last message's offset stands for the end of the batch, control records behind it included.
          resolveOffset: (offset) =>
            group.resolveOffset(
              topic,
              partition,
              last !== undefined && BigInt(offset) === BigInt(last) ? batch.lastOffset() : offset,
            ),
          heartbeat: () => this.heartbeat(),
          pause: () => this.pause(topic, partition),
          // One try, under the generation that is then the current one.
          commitOffsetsIfNecessary: async (offsets) =>
            offsets ? group.commitOffsets(offsets) : group.commitOffsetsIfNecessary(),
          uncommittedOffsets: () => group.uncommittedOffsets(),
          isRunning: () => this.running,
          isStale: () => group.hasSeekOffset(topic, partition),
        }),
      )
    } catch (e) {
      await this.afterError(e)
    }
    if (eachBatchAutoResolve) group.resolveOffset(topic, partition, batch.lastOffset())
  }

  /** A handler call is counted as busy, and what it waits for is known as its own. */
  private async call(what: string, batch: Batch, offset: string, fn: () => Promise<void>): Promise<void> {
    const { clock, group } = this.settings
    const work = clock.track(() => `${what} of ${group.groupId} at ${batch.topic}/${batch.partition}@${offset}`)
    this.handlers++
    const full = this.limitPolls()
    try {
      await work.run(fn)
    } finally {
      full?.cancel()
      this.handlers--
      work.done()
    }
  }

  /**
   * Polls at other nodes end after their time, and what they bring (nothing, too) waits for a worker; so the member
   * heartbeats no more. One that stands for ever here would go on to.
   */
  private limitPolls(): Timer | undefined {
    const { clock, group, concurrency, maxWaitTime } = this.settings
    if (this.handlers < concurrency || group.nodeIds().length < 2) return undefined
    return clock.detached(() => clock.after(maxWaitTime, () => group.stopPolling()))
  }

  /** What was resolved before is committed, then the error goes on into the retrier. */
  private async afterError(e: unknown): Promise<never> {
    // kafkajs reads the stack for its log, and so dies with a TypeError of a handler that threw null or undefined.
    void (e as Error).stack
    if (this.settings.autoCommit) await this.settings.group.commitOffsets()
    throw e
  }

  private pause(topic: string, partition: number): () => void {
    const selection = [{ topic, partitions: [partition] }]
    this.settings.group.pause(selection)
    return () => this.settings.group.resume(selection)
  }

  private async heartbeat(): Promise<void> {
    try {
      await this.settings.group.heartbeat(this.settings.heartbeatInterval)
    } catch (e) {
      if (isRebalancing(e) && this.settings.autoCommit) await this.settings.group.commitOffsets()
      throw e
    }
  }

  /** Virtual time stands still in a circle that real time would slow down, so someone has to say so. */
  private lookForCircles(batch: Batch): void {
    const { clock, group } = this.settings
    const place = `${batch.topic}/${batch.partition}`
    const key = `${batch.fetchedOffset} at ${clock.monotonic()}`
    const before = this.last.get(place)
    const times = before?.key === key ? before.times + 1 : 1
    this.last.set(place, { key, times })
    if (times % CIRCLES !== 0) return
    clock.giveUp(
      `${place}@${batch.fetchedOffset} was handed to ${group.groupId} ${times} ` +
        'times in the same moment: its eachBatch neither resolves the offsets nor pauses the partition',
    )
  }
}
