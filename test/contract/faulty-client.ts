/**
 * Faults at the seam between the engine and its Kafka client, the same on a fake and on a real broker: what a publish or
 * a commit answers, whether it is done at all, and a process that dies. Also a witness of every commit that was taken.
 */
import type { KafkaClient } from '../../src/config'

/**
 * `reject`: refused, nothing stored. `empty`: resolves with no entry, nothing stored. `error-code`: resolves with an entry
 * that carries an error, nothing stored. `never`: no answer, nothing stored. `answer-lost`: stored, then rejected.
 * `late`: stored, no answer. `partial`: only the first topic-partition is stored and answered, as kafkajs does where a
 * partition does not exist.
 */
export type PublishFault =
  'reject' | 'empty' | 'error-code' | 'never' | 'answer-lost' | 'late' | 'partial' | Promise<void>

/** A step of a transaction; `begin` is also how an id is taken over. */
export type TransactionStep = 'begin' | 'publish' | 'offsets' | 'commit'
/**
 * `reject`: not done. `never`: not done, no answer. `answer-lost`: done, then rejected. `late`: done, no answer. An error: not
 * done, rejected with it. A promise: held until it settles.
 */
export type StepFault = 'reject' | 'never' | 'answer-lost' | 'late' | Error | Promise<void>

/** `silent`: resolves without a commit, as kafkajs's own does in a first join. A promise: held until it settles. */
export type CommitFault = 'reject' | 'answer-lost' | 'silent' | Promise<void>

export interface Traced {
  /** `consumer.seek`, `admin.fetchOffsets` and so on. */
  readonly name: string
  /** Of the consumer: its group. */
  readonly group: string | undefined
  readonly args: readonly any[]
}

export interface Injected {
  /** How many requests it has met. */
  readonly hits: number
  stop(): void
}

export interface SeenCommit {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  readonly metadata: string
  /** Order among all commits of the process. */
  readonly order: number
}

export interface FaultyClient extends KafkaClient {
  readonly faults: Faults
}

interface Offsets {
  topics: { topic: string; partitions: { partition: number; offset: string; metadata?: string | null }[] }[]
}

interface Batch {
  topicMessages?: { topic: string; messages: { partition?: number; headers?: Record<string, unknown> }[] }[]
}

type Answer = { topicName: string; partition: number; errorCode: number }[]

interface Rule {
  readonly topic: string | undefined
  readonly fault: PublishFault
  left: number
  hits: number
}

let order = 0

/** As kafkajs tells it. */
const tooLong = (): Error =>
  Object.assign(new Error('The metadata field of the offset request was too large'), {
    name: 'KafkaJSProtocolError',
    type: 'OFFSET_METADATA_TOO_LARGE',
    code: 12,
    retriable: false,
  })

export class Faults {
  /** Commits that the broker took, in the order of their answers. */
  readonly commits: SeenCommit[] = []
  /** Requests of copies, faulty ones too: the topic-partitions of each. */
  readonly publishes: string[][] = []
  /** Places on the main topic (`partition@offset`) of which a copy was acknowledged. */
  readonly copied = new Set<string>()
  /** The broker takes no more of a commit's metadata than so many characters, as with a low `offset.metadata.max.bytes`. */
  longestMetadata = Infinity
  /** Called for each commit that was taken, before the engine knows of it. */
  onTaken: ((commit: SeenCommit) => void) | undefined
  #rules: Rule[] = []
  #commitRules: { topic: string | undefined; fault: CommitFault; left: number; hits: number }[] = []
  /** Every call of the engine's to a consumer, producer or admin client, in order; `payload.commit` is a batch's own. */
  readonly trace: Traced[] = []
  #bent = new Map<string, (result: () => Promise<unknown>) => Promise<unknown>>()
  #replaying: string | undefined
  #stuck: { promise: Promise<void>; free: () => void } | undefined
  #steps: { step: TransactionStep; fault: StepFault; id: string | undefined; left: number; hits: number }[] = []
  #dead = false
  #crashAt: string | undefined
  readonly #consumers = new Set<{ disconnect(): Promise<void> }>()
  readonly #producers = new Set<{ disconnect(): Promise<void> }>()

  publish(fault: PublishFault, { topic, times = Infinity }: { topic?: string; times?: number } = {}): Injected {
    const rule: Rule = { topic, fault, left: times, hits: 0 }
    this.#rules.push(rule)
    return injected(rule, () => (rule.left = 0))
  }

  /** `topic`: only of commits that name it, since tiers commit too, when they are opened. */
  commit(fault: CommitFault, { topic, times = Infinity }: { topic?: string; times?: number } = {}): Injected {
    const rule = { topic, fault, left: times, hits: 0 }
    this.#commitRules.push(rule)
    return injected(rule, () => (rule.left = 0))
  }

  /** `id`: of one transactional id only. */
  transaction(
    step: TransactionStep,
    fault: StepFault,
    { times = Infinity, id }: { times?: number; id?: string } = {},
  ): Injected {
    const rule = { step, fault, id, left: times, hits: 0 }
    this.#steps.push(rule)
    return injected(rule, () => (rule.left = 0))
  }

  async onStep<T>(step: TransactionStep, id: string, act: () => Promise<T>): Promise<T> {
    const alive = (): Promise<T> => (this.#dead ? Promise.reject(new Error('this process is dead')) : act())
    const rule = this.#steps.find((one) => one.step === step && one.left > 0 && (one.id === undefined || one.id === id))
    if (!rule) return alive()
    rule.left--
    rule.hits++
    const { fault } = rule
    if (fault instanceof Promise) {
      await fault
      return alive()
    }
    if (fault instanceof Error) throw fault
    if (fault === 'reject') throw new Error(`injected: ${step} was refused`)
    if (fault === 'never') return new Promise(() => undefined)
    const result = await alive()
    if (fault === 'answer-lost') throw new Error(`injected: the answer to ${step} was lost`)
    return fault === 'late' ? new Promise(() => undefined) : result
  }

  /** A transaction of the engine's, with the faults of the steps, and a witness of what it commits. */
  transactionOf(transaction: any, id: string): any {
    const sent: Batch[] = []
    let offsets: Offsets | undefined
    const send = (batch: Batch): Promise<Answer> =>
      this.onStep('publish', id, () => transaction.sendBatch(batch) as Promise<Answer>)
    return over(transaction, {
      sendBatch: async (batch: Batch) => {
        const answer = await this.onSend(send, batch, false)
        sent.push(batch)
        return answer
      },
      sendOffsets: (all: Offsets) => {
        offsets = all
        return this.onStep('offsets', id, () =>
          this.#isTooLong(all) ? Promise.reject(tooLong()) : (transaction.sendOffsets(all) as Promise<void>),
        )
      },
      commit: () =>
        this.onStep('commit', id, async () => {
          await transaction.commit()
          for (const batch of sent) this.#copied(batch)
          if (offsets) this.#taken(offsets)
        }),
    })
  }

  #isTooLong({ topics }: Offsets): boolean {
    return topics.some(({ partitions }) =>
      partitions.some(({ metadata }) => (metadata?.length ?? 0) > this.longestMetadata),
    )
  }

  #copied(batch: Batch): void {
    for (const place of originsOf(batch)) this.copied.add(place)
  }

  #taken({ topics }: Offsets): void {
    for (const { topic, partitions } of topics) {
      for (const { partition, offset, metadata } of partitions) {
        const taken = { topic, partition, offset: BigInt(offset), metadata: metadata ?? '', order: order++ }
        this.commits.push(taken)
        this.onTaken?.(taken)
      }
    }
  }

  /** From now on disconnecting a producer does not even begin, until `freeDisconnects()`. */
  stickDisconnects(): void {
    let free = (): void => undefined
    const promise = new Promise<void>((resolve) => (free = resolve))
    this.#stuck = { promise, free }
  }

  freeDisconnects(): void {
    this.#stuck?.free()
    this.#stuck = undefined
  }

  /** The process dies: nothing that it still tries reaches the broker, and its members are gone. */
  async kill(): Promise<void> {
    this.#dead = true
    await Promise.allSettled([...this.#consumers, ...this.#producers].map((one) => one.disconnect()))
  }

  get dead(): boolean {
    return this.#dead
  }

  /** What becomes of a call, by its name in the trace: `bend` may delay it or change its answer. Undefined: nothing. */
  bend(name: string, bend: ((result: () => Promise<unknown>) => Promise<unknown>) | undefined): void {
    if (bend) this.#bent.set(name, bend)
    else this.#bent.delete(name)
  }

  onCall(name: string, group: string | undefined, args: readonly unknown[], call: () => unknown): unknown {
    this.trace.push({ name, group, args })
    const bend = this.#bent.get(name)
    return bend ? bend(async () => call()) : call()
  }

  calls(name: string, group?: string): Traced[] {
    return this.trace.filter((one) => one.name === name && (group === undefined || one.group === group))
  }

  /** Hands each batch of the topic over twice: the second time it does not continue its lane. */
  replayBatches(topic: string): void {
    this.#replaying = topic
  }

  replays(topic: string): boolean {
    return this.#replaying === topic
  }

  /** The next batch of the topic kills its consumer: with a TypeError, after which kafkajs itself restarts nothing. */
  crashAtBatch(topic: string): void {
    this.#crashAt = topic
  }

  onBatch(topic: string): void {
    if (this.#crashAt !== topic) return
    this.#crashAt = undefined
    throw new TypeError('injected: the client has a bug')
  }

  async onSend(send: (batch: Batch) => Promise<Answer>, batch: Batch, isFinal = true): Promise<Answer> {
    const places = (batch.topicMessages ?? []).flatMap(({ topic, messages }) =>
      messages.map(({ partition }) => `${topic}/${partition}`),
    )
    this.publishes.push([...new Set(places)])
    if (this.#dead) throw new Error('this process is dead')
    const sendIt = async (what: Batch): Promise<Answer> => {
      const answer = await send(what)
      if (isFinal) this.#copied(what)
      return answer
    }
    const rule = this.#rules.find(
      ({ topic, left }) => left > 0 && (topic === undefined || batch.topicMessages?.some((one) => one.topic === topic)),
    )
    if (!rule) return sendIt(batch)
    rule.left--
    rule.hits++
    if (rule.fault instanceof Promise) {
      await rule.fault
      return sendIt(batch)
    }
    switch (rule.fault) {
      case 'reject':
        throw new Error('injected: the publish was refused')
      case 'empty':
        return []
      case 'never':
        return new Promise(() => undefined)
      case 'late':
        await sendIt(batch)
        return new Promise(() => undefined)
      case 'answer-lost':
        await sendIt(batch)
        throw new Error('injected: the answer was lost')
      case 'partial':
        return sendIt(firstPlaceOnly(batch))
      case 'error-code':
        return answersOf(batch, 5)
    }
  }

  onCommit(commit: () => Promise<void>, offsets: Offsets | undefined): Promise<void> {
    if (this.#dead) return Promise.reject(new Error('this process is dead'))
    if (offsets && this.#isTooLong(offsets)) return Promise.reject(tooLong())
    const rule = this.#commitRules.find(
      ({ topic, left }) => left > 0 && (topic === undefined || offsets?.topics.some((one) => one.topic === topic)),
    )
    if (rule) {
      rule.left--
      rule.hits++
      if (rule.fault === 'reject') return Promise.reject(new Error('injected: the commit was refused'))
      if (rule.fault === 'silent') return Promise.resolve()
    }
    // Called synchronously: the engine's offsets belong to the generation that is current now.
    const made = rule?.fault instanceof Promise ? rule.fault.then(commit) : commit()
    return made.then(() => {
      if (offsets) this.#taken(offsets)
      if (rule?.fault === 'answer-lost') throw new Error('injected: the answer to the commit was lost')
    })
  }

  track(kind: 'consumer' | 'producer', one: { disconnect(): Promise<void> }): void {
    ;(kind === 'consumer' ? this.#consumers : this.#producers).add(one)
  }

  async onDisconnect(disconnect: () => Promise<void>): Promise<void> {
    await this.#stuck?.promise
    await disconnect()
  }
}

function injected(rule: { readonly hits: number }, stop: () => void): Injected {
  return {
    get hits() {
      return rule.hits
    },
    stop,
  }
}

function originsOf({ topicMessages = [] }: Batch): string[] {
  return topicMessages.flatMap(({ messages }) =>
    messages.map(
      ({ headers = {} }) => `${String(headers['x-original-partition'])}@${String(headers['x-original-offset'])}`,
    ),
  )
}

function firstPlaceOnly(batch: Batch): Batch {
  const [first] = batch.topicMessages ?? []
  if (!first) return batch
  const messages = first.messages.filter(({ partition }) => partition === first.messages[0]?.partition)
  return { ...batch, topicMessages: [{ ...first, messages }] }
}

function answersOf({ topicMessages = [] }: Batch, errorCode: number): Answer {
  return topicMessages.flatMap(({ topic, messages }) =>
    [...new Set(messages.map(({ partition = 0 }) => partition))].map((partition) => ({
      topicName: topic,
      partition,
      errorCode,
    })),
  )
}

/** The client with some of its methods replaced; everything else, symbols too, is the client's own. */
function over<T extends object>(target: T, methods: Record<string, unknown>): T {
  return new Proxy(target, {
    get: (one, name) =>
      typeof name === 'string' && Object.hasOwn(methods, name) ? methods[name] : Reflect.get(one, name),
  })
}

/** Notes every call of a method. */
function traced<T extends object>(target: T, kind: string, group: string | undefined, faults: Faults): T {
  return new Proxy(target, {
    get(one, name) {
      const value: unknown = Reflect.get(one, name)
      if (typeof value !== 'function' || typeof name !== 'string' || name === 'on') return value
      return (...args: unknown[]) =>
        faults.onCall(`${kind}.${name}`, group, args, () => value.apply(one, args) as unknown)
    },
  })
}

export function faultyClient(client: KafkaClient): FaultyClient {
  const faults = new Faults()
  const kafka = client as any
  const payloadOf = (payload: any, group: string): any =>
    over(payload, {
      commitOffsetsIfNecessary: (offsets?: Offsets) => {
        faults.trace.push({ name: 'payload.commit', group, args: [offsets] })
        return faults.onCommit(() => payload.commitOffsetsIfNecessary(offsets), offsets)
      },
    })
  return over(kafka, {
    faults,
    admin: (config: unknown) => traced(kafka.admin(config), 'admin', undefined, faults),
    producer: (config: unknown) => {
      faults.trace.push({ name: 'producer', group: undefined, args: [config] })
      const producer = kafka.producer(config)
      faults.track('producer', producer)
      const bent = over(producer, {
        sendBatch: (batch: Batch) => faults.onSend((one) => producer.sendBatch(one), batch),
        disconnect: () => faults.onDisconnect(() => producer.disconnect()),
        transaction: () => {
          const id = (config as { transactionalId?: string }).transactionalId ?? ''
          const begin = (): Promise<unknown> => producer.transaction() as Promise<unknown>
          return faults.onStep('begin', id, begin).then((transaction) => faults.transactionOf(transaction, id))
        },
      })
      return traced(bent, 'producer', undefined, faults)
    },
    consumer: (config: { groupId: string }) => {
      const { groupId } = config
      faults.trace.push({ name: 'consumer', group: groupId, args: [config] })
      const consumer = kafka.consumer(config)
      faults.track('consumer', consumer)
      const bent = over(consumer, {
        commitOffsets: (list: { topic: string; partition: number; offset: string; metadata?: string | null }[]) =>
          faults.onCommit(() => consumer.commitOffsets(list), {
            topics: list.map(({ topic, ...partition }) => ({ topic, partitions: [partition] })),
          }),
        run: (options: any) =>
          consumer.run({
            ...options,
            eachBatch: async (payload: any) => {
              const { topic } = payload.batch
              faults.onBatch(topic)
              const hand = (): Promise<unknown> =>
                faults.onCall('eachBatch', groupId, [payload.batch], () =>
                  options.eachBatch(payloadOf(payload, groupId)),
                ) as Promise<unknown>
              await hand()
              if (faults.replays(topic)) await hand()
            },
          }),
      })
      return traced(bent, 'consumer', groupId, faults)
    },
  }) as FaultyClient
}
