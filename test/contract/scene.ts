/**
 * What nearly every promise needs: topics, a group, members that run the engine, and a note of every handler call and of
 * every commit. A scene ends with `close()`, which stops what it started and fails where something is left behind.
 */
import { expect } from 'vitest'
import {
  createResilientConsumer,
  memoryHooks,
  type ResilientConsumer,
  type HandlerContext,
  type EachMessage,
} from '../../src'
import { faultyClient, type Faults, type SeenCommit } from './faulty-client'
import type { Gate, Stage, StoredRecord, WireRecord } from './stage'

export interface Call {
  readonly member: number
  /** Of the first delivery. */
  readonly partition: number
  readonly offset: string
  readonly attempt: number
  readonly key: string | null
  readonly value: string | null
  readonly topic: string
  /** Where the copy stands. */
  readonly from: { readonly topic: string; readonly partition: number; readonly offset: string }
  readonly startedAt: number
  readonly dueAt: number | undefined
  endedAt: number | undefined
  readonly payload: EachMessage
  readonly ctx: HandlerContext
}

export interface Member {
  readonly consumer: ResilientConsumer
  readonly faults: Faults
  readonly hooks: ReturnType<typeof memoryHooks>
  stop(): Promise<void>
}

export interface SceneOptions {
  /** Partitions of the main topic, and, where they differ, of each retry topic and of the dead letter topic. */
  readonly partitions?: number
  readonly retryPartitions?: number
  readonly deadPartitions?: number
  readonly schedule?: readonly string[]
  readonly topic?: string
  readonly group?: string
}

type Act = (call: Call) => unknown

export class Scene {
  readonly calls: Call[] = []
  readonly members: Member[] = []
  #gates: Gate[] = []
  #exactlyOnce = false

  private constructor(
    readonly stage: Stage,
    readonly topic: string,
    readonly group: string,
    readonly schedule: readonly string[],
  ) {}

  static async open(stage: Stage, options: SceneOptions = {}): Promise<Scene> {
    const { partitions = 1, schedule = ['200ms'], retryPartitions = partitions, deadPartitions = partitions } = options
    const scene = Scene.over(stage, options)
    const retries = [...new Set(schedule)].map((delay) => [scene.retry(delay), retryPartitions] as const)
    await stage.createTopics({ [scene.topic]: partitions, ...Object.fromEntries(retries), [scene.dlq]: deadPartitions })
    return scene
  }

  /** As `open`, on topics that are there already. */
  static over(stage: Stage, { topic, group, schedule = ['200ms'] }: SceneOptions): Scene {
    return new Scene(stage, topic ?? stage.unique('orders'), group ?? stage.unique('billing'), schedule)
  }

  get dlq(): string {
    return `${this.topic}.dlq`
  }

  retry(delay: string): string {
    return `${this.topic}.retry.${delay}`
  }

  retryGroup(delay: string): string {
    return `${this.group}.retry.${delay}`
  }

  gate(): Gate {
    const gate = this.stage.gate()
    this.#gates.push(gate)
    return gate
  }

  /** A member that is not started yet; `act` is the handler. */
  member(act: Act = () => undefined, options: Record<string, unknown> = {}): Member {
    const client = faultyClient(this.stage.client())
    const hooks = memoryHooks({ keep: 100_000 })
    const index = this.members.length
    this.#exactlyOnce ||= options['delivery'] === 'exactly-once'
    const consumer = createResilientConsumer({
      kafka: client,
      groupId: this.group,
      topic: this.topic,
      schedule: [...this.schedule],
      handler: (payload: EachMessage, ctx: HandlerContext) => this.#handle(index, act, payload, ctx),
      unknownErrors: 'retry',
      commitInterval: '20ms',
      heartbeatInterval: '200ms',
      sessionTimeout: '10s',
      // A handler that a test holds is held: on the fake its time-out would soon be over, and free its place.
      handlerTimeout: '1h',
      shutdownTimeout: '10s',
      sameGroupInProcess: 'allow',
      logger: SILENT,
      hooks,
      ...options,
    } as never)
    const member: Member = {
      consumer,
      hooks,
      faults: client.faults,
      stop: async () => void (await this.stage.during(consumer.stop())),
    }
    this.members.push(member)
    return member
  }

  async join(act?: Act, options?: Record<string, unknown>): Promise<Member> {
    const member = this.member(act, options)
    await this.stage.during(member.consumer.start())
    return member
  }

  async #handle(member: number, act: Act, payload: EachMessage, ctx: HandlerContext): Promise<unknown> {
    const { topic, partition, message } = payload
    const call: Call = {
      member,
      topic,
      partition,
      offset: message.offset,
      attempt: ctx.attempt,
      key: message.key && message.key.toString(),
      value: message.value && message.value.toString(),
      from: ctx.source,
      startedAt: this.stage.now(),
      dueAt: ctx.dueAt,
      endedAt: undefined,
      payload,
      ctx,
    }
    this.calls.push(call)
    try {
      return await act(call)
    } finally {
      call.endedAt = this.stage.now()
    }
  }

  /** Values of the calls, in order; of one attempt where it is given. */
  values(attempt?: number): (string | null)[] {
    return this.calls.filter((call) => attempt === undefined || call.attempt === attempt).map(({ value }) => value)
  }

  produce(records: readonly (string | WireRecord)[], partition = 0): Promise<bigint> {
    const asRecords = records.map((record) => (typeof record === 'string' ? { value: record } : record))
    return this.stage.produce(this.topic, partition, asRecords)
  }

  dead(): Promise<StoredRecord[]> {
    return this.stage.records(this.dlq)
  }

  committed(topic = this.topic, group = this.group): Promise<Map<number, bigint>> {
    return this.stage.committed(group, topic)
  }

  /** Waits until every record of the main topic and of every tier is committed: nothing is left to do. */
  async untilDone(): Promise<void> {
    let lag = ''
    const isDone = async (): Promise<boolean> => {
      const groups = [
        [this.group, this.topic],
        ...this.schedule.map((delay) => [this.retryGroup(delay), this.retry(delay)]),
      ]
      for (const [group, topic] of groups as [string, string][]) {
        const [committed, ends] = [await this.stage.committed(group, topic), await this.stage.ends(topic)]
        for (const [partition, { high }] of ends) {
          lag = `${topic}/${partition} is committed at ${committed.get(partition)} of ${high}`
          // With exactly-once the first commit comes with the first record: where there is none, there is no commit.
          if (high === 0n && this.#exactlyOnce) continue
          if ((committed.get(partition) ?? -1n) < high) return false
        }
      }
      return true
    }
    await this.stage.until(isDone, () => `everything settled: ${lag}; ${this.calls.length} calls`)
  }

  untilCalls(count: number, which: (call: Call) => boolean = () => true): Promise<void> {
    const found = (): number => this.calls.filter(which).length
    return this.stage.until(
      () => found() >= count,
      () =>
        `${count} handler calls: there were ${found()}: ${this.calls.map(({ value, attempt }) => `${value}#${attempt}`).join()}`,
    )
  }

  untilDead(count: number): Promise<void> {
    return this.stage.until(async () => (await this.dead()).length >= count, `${count} dead letters`)
  }

  /**
   * Has a record of the given partition handled and committed: one commit carries all that may be committed, so what is
   * not committed afterwards was held back on purpose. Give a partition that nothing blocks.
   */
  async witness(partition: number): Promise<void> {
    const offset = await this.produce(['witness'], partition)
    await this.stage.until(
      async () => ((await this.committed()).get(partition) ?? -1n) > offset,
      `the witness on partition ${partition} is committed`,
    )
  }

  /** Every commit that a broker took from a member of this scene, in order. */
  commits(topic = this.topic): SeenCommit[] {
    return this.members
      .flatMap(({ faults }) => faults.commits.filter((commit) => commit.topic === topic))
      .sort((a, b) => a.order - b.order)
  }

  expectNoStepBack(topic = this.topic): void {
    const last = new Map<number, bigint>()
    for (const { partition, offset } of this.commits(topic)) {
      expect(offset, `commits of ${topic}/${partition}`).toBeGreaterThanOrEqual(last.get(partition) ?? 0n)
      last.set(partition, offset)
    }
  }

  /** Which partitions of the main topic a member holds now. */
  partitionsOf(member: Member): number[] {
    const [main] = member.consumer.health().groups
    return (main?.partitions ?? [])
      .filter(({ topic }) => topic === this.topic)
      .map(({ partition }) => partition)
      .sort((a, b) => a - b)
  }

  /** Waits until all partitions are shared out among these members, and each has asked where to begin. */
  untilShared(members: readonly Member[], partitions: number): Promise<void> {
    const shares = (): number[][] => members.map((member) => this.partitionsOf(member))
    const ready = (member: Member): boolean =>
      member.consumer
        .health()
        .groups.every((group) => group.partitions.every(({ state }) => state !== 'opening' && state !== 'verifying'))
    return this.stage.until(
      () =>
        shares().flat().length === partitions &&
        shares().every((share) => share.length >= Math.floor(partitions / members.length)) &&
        members.every(ready),
      () => `${partitions} partitions are shared: ${JSON.stringify(shares())}`,
    )
  }

  expectNeverEarly(): void {
    for (const { dueAt, startedAt, value } of this.calls) {
      if (dueAt !== undefined) expect(startedAt, `the start of ${value}`).toBeGreaterThanOrEqual(dueAt)
    }
  }

  async close(): Promise<void> {
    for (const gate of this.#gates) gate.open()
    // Who plays dead has nothing that could still come to an end.
    const within = ({ faults }: Member): string => (faults.dead ? '100ms' : '5s')
    await Promise.all(this.members.map((one) => this.stage.during(one.consumer.stop({ timeout: within(one) }))))
  }
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

export const headersNamed = (record: StoredRecord, name: string): (Buffer | null)[] =>
  record.headers.filter((header) => header[0] === name).map((header) => header[1])

export const header = (record: StoredRecord, name: string): string | undefined =>
  headersNamed(record, name)[0]?.toString()
