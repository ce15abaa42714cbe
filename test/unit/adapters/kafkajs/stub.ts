import type {
  AdminLike,
  ConsumerLike,
  EachBatchPayload,
  KafkaJsLike,
  OffsetsByTopic,
  ProducerLike,
} from '../../../../src/adapters/kafkajs/kafkajs-like'
import { hold, type Held } from '../../consume/given'

/** A kafkajs consumer by script: the test says when a call settles and which event comes when. */
export interface StubConsumer {
  readonly config: any
  /** Calls in order, as text. */
  readonly calls: string[]
  /** Calls of this name settle as the test says; all others at once. */
  hold(name: string): Held<void>
  /** The next call of this name rejects. */
  fail(name: string, error: unknown): void
  emit(name: string, payload?: unknown): void
  join(partitions?: Record<string, number[]>, memberId?: string): void
  /** What a crash looks like: kafkajs asks restartOnFailure (retriable errors only), then tells. */
  crash(error: Error, retriable?: boolean): Promise<void>
  /** One call of eachBatch; `payload` adds to the plain one. */
  batch(
    fields?: Partial<EachBatchPayload['batch']> & { fetchedOffset?: string },
    payload?: Partial<EachBatchPayload>,
  ): Promise<void>
  /** Whether the two commit calls are followed by COMMIT_OFFSETS. */
  commits: boolean
}

export interface StubKafka extends KafkaJsLike {
  readonly consumers: StubConsumer[]
  readonly producers: {
    config: any
    calls: string[]
    sent: any[]
    offsets: any[]
    hold(name: string): Held<void>
    answer: any
  }[]
  admins: number
  readonly adminConfigs: any[]
}

export function createStubKafka(admin: Partial<AdminLike> = {}): StubKafka {
  const consumers: StubConsumer[] = []
  const producers: StubKafka['producers'] = []
  const adminConfigs: any[] = []
  const kafka: StubKafka = {
    consumers,
    producers,
    adminConfigs,
    admins: 0,
    consumer(config) {
      const { stub, like } = stubConsumer(config)
      consumers.push(stub)
      return like
    },
    producer(config) {
      const { calls, call, hold } = script()
      const stub: StubKafka['producers'][number] = { config, calls, sent: [], offsets: [], hold, answer: [] }
      producers.push(stub)
      return {
        connect: () => call('connect'),
        disconnect: () => call('disconnect'),
        async sendBatch(batch) {
          stub.sent.push(batch)
          await call('sendBatch')
          return stub.answer
        },
        async transaction() {
          await call('transaction')
          return {
            async sendBatch(batch) {
              stub.sent.push(batch)
              await call('txn.sendBatch')
              return stub.answer
            },
            async sendOffsets(offsets) {
              stub.offsets.push(offsets)
              await call('txn.sendOffsets')
            },
            commit: () => call('txn.commit'),
            abort: () => call('txn.abort'),
          }
        },
      } satisfies ProducerLike
    },
    admin(config) {
      kafka.admins++
      adminConfigs.push(config)
      return { connect: async () => undefined, disconnect: async () => void kafka.admins--, ...admin } as AdminLike
    },
  }
  return kafka
}

function script() {
  const calls: string[] = []
  const holds = new Map<string, Held<void>[]>()
  const failures = new Map<string, unknown[]>()
  return {
    calls,
    hold(name: string): Held<void> {
      const held = hold()
      holds.set(name, [...(holds.get(name) ?? []), held])
      return held
    },
    fail(name: string, error: unknown): void {
      failures.set(name, [...(failures.get(name) ?? []), error])
    },
    async call(name: string): Promise<void> {
      calls.push(name)
      const error = failures.get(name)?.shift()
      if (error !== undefined) throw error
      await holds.get(name)?.shift()?.promise
    },
  }
}

function stubConsumer(config: any): { stub: StubConsumer; like: ConsumerLike } {
  const { calls, call, hold, fail } = script()
  const listeners = new Map<string, (event: never) => void>()
  let eachBatch: ((payload: EachBatchPayload) => Promise<void>) | undefined
  const emit = (name: string, payload: unknown = {}): void => listeners.get(`consumer.${name}`)?.({ payload } as never)
  const placed = (name: string, list: { topic: string; partitions?: number[] }[]): void =>
    void calls.push(...list.map(({ topic, partitions }) => `${name} ${topic}/${partitions?.join()}`))
  const stub: StubConsumer = {
    config,
    calls,
    hold,
    fail,
    emit,
    commits: true,
    join: (memberAssignment = { orders: [0, 1] }, memberId = 'm-1') =>
      emit('group_join', { memberId, isLeader: true, memberAssignment }),
    async crash(error, retriable = false) {
      const restart = retriable && (await config.retry.restartOnFailure(error))
      emit('crash', { error, restart })
    },
    async batch(fields, payload) {
      const batch = {
        topic: 'orders',
        partition: 0,
        messages: [],
        fetchedOffset: '5',
        lastOffset: () => '9',
        ...fields,
      }
      await eachBatch!({
        batch,
        resolveOffset: (offset) => void calls.push(`resolve ${offset}`),
        async commitOffsetsIfNecessary(offsets?: OffsetsByTopic) {
          await call(`commit by payload ${JSON.stringify(offsets)}`)
          if (stub.commits) emit('commit_offsets')
        },
        ...payload,
      })
    },
  }
  const like: ConsumerLike = {
    connect: () => call('connect'),
    disconnect: () => call('disconnect'),
    subscribe: ({ topics, fromBeginning }) =>
      call(`subscribe ${topics.join()} ${fromBeginning ? 'from beginning' : ''}`),
    async run(given) {
      eachBatch = given.eachBatch
      const { autoCommit, eachBatchAutoResolve, partitionsConsumedConcurrently: concurrency } = given
      calls.push(`run config ${JSON.stringify({ autoCommit, eachBatchAutoResolve, concurrency })}`)
      await call('run')
    },
    async commitOffsets(offsets) {
      await call(`commit by consumer ${JSON.stringify(offsets)}`)
      if (stub.commits) emit('commit_offsets')
    },
    async describeGroup() {
      await call('describe the group')
      return { state: 'Stable', members: [] }
    },
    seek: ({ topic, partition, offset }) => void calls.push(`seek ${topic}/${partition} ${offset}`),
    pause: (list) => placed('pause', list),
    resume: (list) => placed('resume', list),
    on: (name: string, listener: (event: never) => void) => listeners.set(name, listener),
  }
  return { stub, like }
}
