/** Walks a walk on a stage: takes each step, waits until nothing happens any more, and notes what there is to see. */
import type { Admin, Consumer, EachBatchPayload, EachMessagePayload } from 'kafkajs'
import { byPartition, consumerOf, outcome, produce, steered, type Plan, type Stage, type Story } from './staging'
import { PARTITIONS, type Member, type Mishap, type Step, type Walk } from './walk-plan'

/** ms; so often in a row nothing may have happened. Together longer than any wait between two tries of what walks. */
const QUIET = 110
const TIMES = 4

export const walking =
  (walk: Walk): Story =>
  async (stage) => {
    await stage.create('orders', PARTITIONS)
    const walker = new Walker(stage, walk)
    await walker.begin()
    for (const step of walk.steps) await walker.take(step)
    await walker.end()
  }

class Walker {
  private readonly topic: string
  private readonly plan: Plan = {}
  private readonly members: Partial<Record<Member, Consumer>> = {}
  private readonly running = new Set<Member>()
  private readonly armed = new Map<number, { mishap: Mishap; offset: number; times: number }>()
  private readonly payloads = new Map<number, EachBatchPayload>()
  private readonly calls: string[][] = Array.from({ length: PARTITIONS }, () => [])
  private readonly events: Record<Member, string[]> = { first: [], second: [] }
  private commits = new Set<string>()
  private happened = 0
  private produced = 0
  private readonly admin: Admin

  constructor(
    private readonly stage: Stage,
    private readonly walk: Walk,
  ) {
    this.topic = stage.topic()
    this.admin = stage.kafka.admin({ retry: { retries: 0 } })
  }

  async begin(): Promise<void> {
    await this.admin.connect()
    await this.admin.fetchTopicMetadata({ topics: [this.topic] })
    await this.join('first')
    // A group that starts at the end looks for it only after the join: what is produced before that is not seen.
    await this.quiet()
  }

  async end(): Promise<void> {
    for (const member of Object.values(this.members)) await member.disconnect()
    await this.admin.disconnect()
  }

  async take(step: Step): Promise<void> {
    const did = await this.stage.eventually(outcome(this.act(step)))
    await this.quiet()
    this.stage.note(step.do, did, await this.view())
    for (const list of [...this.calls, ...Object.values(this.events)]) list.length = 0
    this.commits = new Set()
  }

  private async act(step: Step): Promise<unknown> {
    const { topic } = this
    switch (step.do) {
      case 'produce': {
        const messages = Array.from({ length: step.count }, () => ({
          value: String(this.produced++),
          partition: step.partition,
        }))
        if (!step.apart) return produce(this.stage, messages)
        for (const message of messages) {
          await produce(this.stage, [message])
          await this.quiet()
        }
        return
      }
      case 'commit': {
        const { partition, metadata = null } = step
        return this.members[step.member]?.commitOffsets([{ topic, partition, offset: String(step.offset), metadata }])
      }
      case 'seek':
        return this.members[step.member]?.seek({ topic, partition: step.partition, offset: String(step.offset) })
      case 'pause':
      case 'resume': {
        const { partitions } = step
        return this.members[step.member]?.[step.do]([{ topic, ...(partitions === undefined ? {} : { partitions }) }])
      }
      case 'join':
        return this.running.has('second') ? undefined : this.join('second')
      case 'leave':
        if (!this.running.has('second')) return
        this.running.delete('second')
        this.share()
        await this.members.second?.disconnect()
        delete this.members.second
        return
      case 'restart':
        await this.members.first?.disconnect()
        this.running.delete('first')
        await this.quiet()
        return this.join('first')
      case 'stale':
        return this.payloads.size === 0 ? undefined : [...this.payloads.values()].map((one) => one.isRunning())
      case 'cut':
        return this.admin.deleteTopicRecords({
          topic,
          partitions: [{ partition: step.partition, offset: String(step.offset) }],
        })
      case 'arm':
        return void this.armed.set(step.partition, { ...step, times: step.mishap === 'crash' ? 2 : 1 })
      case 'late': {
        const payload = this.payloads.get(step.partition)
        if (step.what === 'resolve') return payload?.resolveOffset(String(step.offset))
        const partitions = [{ partition: step.partition, offset: String(step.offset) }]
        return payload?.commitOffsetsIfNecessary({ topics: [{ topic, partitions }] })
      }
      case 'offsets': {
        const all = await this.admin.fetchTopicOffsets(topic)
        return byPartition(all)
      }
      case 'describe': {
        const { groups } = await this.admin.describeGroups([this.stage.group()])
        return groups.map(({ state, protocol, members }) => [state, protocol, members.length])
      }
    }
  }

  private share(): void {
    const both = this.running.has('first') && this.running.has('second')
    const all = Array.from({ length: PARTITIONS }, (_, i) => i)
    this.plan.first = { [this.topic]: both ? all.slice(0, 1) : all }
    this.plan.second = { [this.topic]: both ? all.slice(1) : all }
  }

  private async join(name: Member): Promise<void> {
    const { settings } = this.walk
    const consumer = (this.members[name] ??= this.make(name))
    this.running.add(name)
    this.share()
    await consumer.connect()
    const subscription = { topics: [this.topic], fromBeginning: settings.fromBeginning }
    await consumer.subscribe(subscription)
    await this.run(name, consumer)
  }

  private async revive(name: Member, consumer: Consumer): Promise<void> {
    await consumer.connect()
    await this.run(name, consumer)
  }

  private async run(name: Member, consumer: Consumer): Promise<void> {
    const { autoCommit, autoCommitThreshold, eachBatchAutoResolve, concurrency, each } = this.walk.settings
    await consumer.run({
      autoCommit,
      autoCommitThreshold,
      eachBatchAutoResolve,
      partitionsConsumedConcurrently: concurrency,
      ...(each === 'message'
        ? { eachMessage: (payload: EachMessagePayload) => this.onMessage(name, consumer, payload) }
        : { eachBatch: (payload: EachBatchPayload) => this.onBatch(name, consumer, payload) }),
    })
  }

  private make(name: Member): Consumer {
    const { stage } = this
    const kafka = name === 'second' && !this.walk.settings.sharedClient ? stage.other() : stage.kafka
    // A restart waits for twice the initialRetryTime: long enough for the other member to have noticed that this one left.
    const consumer = consumerOf(
      stage,
      {
        partitionAssigners: [steered(this.plan, [this.topic], name)],
        heartbeatInterval: 100,
        retry: { retries: 1, initialRetryTime: 120, factor: 0 },
      },
      kafka,
    )
    const { CRASH, GROUP_JOIN, REBALANCING, STOP, COMMIT_OFFSETS } = consumer.events
    const tell = (text: string): void => {
      this.happened++
      this.events[name].push(text)
    }
    consumer.on(GROUP_JOIN, ({ payload }) => tell(`joined ${JSON.stringify(payload.memberAssignment[this.topic])}`))
    consumer.on(REBALANCING, () => tell('rebalancing'))
    consumer.on(STOP, () => tell('stopped'))
    consumer.on(CRASH, ({ payload: { error, restart } }) => {
      tell(`crashed: ${error.name}: ${error.message}, ${restart}`)
      // Not without it for the rest of the walk; and not at once, for its sockets are still about to close.
      if (!restart) void stage.sleep(250).then(() => this.revive(name, consumer))
    })
    consumer.on(COMMIT_OFFSETS, ({ payload }) => {
      for (const { partitions } of payload.topics) {
        for (const { partition, offset } of partitions) this.commits.add(`${name} ${partition}: ${offset}`)
      }
    })
    return consumer
  }

  private async onMessage(name: Member, consumer: Consumer, { partition, message, pause }: EachMessagePayload) {
    this.called(partition, `${name} ${message.offset}`)
    await this.mishap(partition, consumer, pause)
  }

  private async onBatch(name: Member, consumer: Consumer, payload: EachBatchPayload): Promise<void> {
    const { batch, resolveOffset, pause, uncommittedOffsets, isStale } = payload
    const { partition } = batch
    const { fetchedOffset } = batch as unknown as { fetchedOffset: string }
    this.payloads.set(partition, payload)
    this.called(partition, `${name} from ${fetchedOffset} to ${batch.lastOffset()} of ${batch.highWatermark}`)
    for (const { offset } of batch.messages) {
      this.called(partition, offset)
      const paused = await this.mishap(partition, consumer, pause)
      if (this.walk.settings.resolves === 'each') resolveOffset(offset)
      if (paused) return
    }
    if (this.walk.settings.resolves === 'last') resolveOffset(batch.lastOffset())
    const open = uncommittedOffsets().topics.flatMap(({ partitions }) => partitions)
    const own = open.filter((one) => Number(one.partition) === partition).map(({ offset }) => offset)
    this.called(partition, `uncommitted ${own.join()}, stale ${isStale()}`)
  }

  private called(partition: number, what: string): void {
    this.happened++
    this.calls[partition]?.push(what)
  }

  /** Answers whether the handler is to return here, its partition being paused. */
  private async mishap(partition: number, consumer: Consumer, pause: () => () => void): Promise<boolean> {
    const armed = this.armed.get(partition)
    if (armed === undefined) return false
    if (--armed.times === 0) this.armed.delete(partition)
    const at = { topic: this.topic, partition, offset: String(armed.offset) }
    if (armed.mishap === 'throw' || armed.mishap === 'crash') throw new Error(`refused by ${armed.mishap}`)
    if (armed.mishap === 'bug') throw new TypeError('a bug')
    if (armed.mishap === 'seek') consumer.seek(at)
    if (armed.mishap === 'commit') await consumer.commitOffsets([at])
    if (armed.mishap === 'pause') pause()
    return armed.mishap === 'pause'
  }

  private async quiet(): Promise<void> {
    let before = -1
    for (let still = 0, times = 0; still < TIMES; times++) {
      if (times > 100) throw new Error('it does not come to rest')
      still = before === this.happened ? still + 1 : 0
      before = this.happened
      await this.stage.pass(QUIET)
    }
  }

  private async view(): Promise<unknown> {
    const [offsets] = await this.admin.fetchOffsets({ groupId: this.stage.group(), topics: [this.topic] })
    const committed = byPartition(offsets?.partitions ?? []).map(
      ({ offset, metadata }) => `${offset} ${metadata ?? ''}`,
    )
    const paused = Object.values(this.members).map((one) => one.paused().flatMap(({ partitions }) => partitions))
    const commits = this.walk.settings.concurrency > 1 ? [] : [...this.commits].sort()
    const { first, second } = this.events
    return {
      calls: this.calls.map((all) => [...all]),
      committed,
      paused,
      commits,
      first: [...first],
      second: [...second],
    }
  }
}
