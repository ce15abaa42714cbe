/**
 * The account of one run: what the broker holds, what was acknowledged, which handlers ran. P1, P2, P6 and P7 are looked
 * after while the run goes on, and once more at its end. It believes the broker's logs and never the engine.
 */
import type { FakeClient, SeenCommit, World } from '../../src/testing'

export type Ordering = 'partition' | 'key' | 'unordered'
export type Fate = 'ok' | 'shaky' | 'fatal' | 'hopeless'

export interface Stage {
  readonly group: string
  readonly topic: string
  readonly schedule: readonly string[]
  readonly ordering: Ordering
  readonly delivery: 'at-least-once' | 'exactly-once'
}

interface Call {
  readonly member: string
  readonly partition: number
  readonly offset: bigint
  readonly key: string | null
  readonly attempt: number
  readonly source: string
  readonly tier: string
  /** Losses of lanes that the member had seen on this tier when the call began. */
  readonly tenure: number
  /** Of all begins and ends, in order. */
  readonly began: number
  ended: number | undefined
  failed: boolean
}

interface Source {
  readonly topic: string
  readonly partition: number
  readonly offset: string
}

type Headers = Readonly<Record<string, unknown>>

const placeOf = ({ topic, partition, offset }: { topic: string; partition: number; offset: string | bigint }): string =>
  `${topic}/${partition}@${offset}`

const headerOf = (headers: Headers, name: string): string => String(headers[name])

export class Ledger {
  readonly calls: Call[] = []
  /** Main topic, tiers and dead letter topic, in the order in which a record passes them. */
  readonly #levels: readonly string[]
  readonly #handled = new Set<string>()
  /** Sources whose handler ended well; first places whose copy on a topic was acknowledged. */
  readonly #done = new Set<string>()
  readonly #acknowledged = new Set<string>()
  readonly #committed = new Map<string, bigint>()
  /** The highest commit of each partition: what has been settled, whatever became of the offset afterwards. */
  readonly #highest = new Map<string, bigint>()
  readonly #tenures = new Map<string, number>()
  readonly #first = new Map<string, { running: Set<Call>; last: bigint; tenure: number }>()
  #clock = 0
  readonly fates = new Map<string, Fate>()
  readonly #places = new Map<string, string>()

  constructor(
    readonly world: World,
    readonly stage: Stage,
  ) {
    const { topic, schedule } = stage
    this.#levels = [topic, ...schedule.map((delay) => `${topic}.retry.${delay}`), `${topic}.dlq`]
    world.onCommit((commit) => this.#onCommit(commit))
  }

  produce(key: string | null, value: string, fate: Fate): void {
    const { partition, offset } = this.world.kafka.produce(this.stage.topic, { key, value })
    this.fates.set(value, fate)
    this.#places.set(placeOf({ topic: this.stage.topic, partition, offset }), value)
    this.world.note(`produced ${value} (${fate}) at ${this.stage.topic}/${partition}@${offset}`)
  }

  /** The client with a witness of every acknowledgement, as the engine itself gets it. */
  watch(client: FakeClient): FakeClient {
    return {
      ...client,
      producer: (config) => {
        const producer = client.producer(config)
        return {
          ...producer,
          sendBatch: async (batch) => {
            const answer = await producer.sendBatch(batch)
            const there = new Set(
              answer.filter(({ errorCode }) => errorCode === 0).map((one) => `${one.topicName}/${one.partition}`),
            )
            for (const { topic, messages } of batch.topicMessages ?? []) {
              for (const { partition, headers = {} } of messages) {
                if (!there.has(`${topic}/${partition}`)) continue
                const of = `${headerOf(headers, 'x-original-partition')}@${headerOf(headers, 'x-original-offset')}`
                this.#acknowledged.add(`${topic} ${of}`)
              }
            }
            return answer
          },
        }
      },
    }
  }

  /** The member may have lost lanes of a tier. */
  lost(member: string, tier: string): void {
    const key = `${member} ${tier}`
    this.#tenures.set(key, (this.#tenures.get(key) ?? 0) + 1)
  }

  tenureOf(member: string, topic: string): number {
    return this.#tenures.get(`${member} ${this.#tierOf(topic)}`) ?? 0
  }

  #tierOf(topic: string): string {
    const level = this.#levels.indexOf(topic)
    return level === 0 ? 'main' : (this.stage.schedule[level - 1] ?? '')
  }

  begin(of: {
    member: string
    partition: number
    offset: string
    key: string | null
    attempt: number
    source: Source
    /** As it was when the handler was given the record, where that was before. */
    tenure?: number
  }): Call {
    const { source, member, attempt } = of
    const tier = this.#tierOf(source.topic)
    const call: Call = {
      member,
      partition: of.partition,
      offset: BigInt(of.offset),
      key: of.key,
      attempt,
      source: placeOf(source),
      tier,
      tenure: of.tenure ?? this.tenureOf(member, source.topic),
      began: ++this.#clock,
      ended: undefined,
      failed: false,
    }
    this.world.note(`${member} begins ${nameOf(call)} from ${call.source}`)
    this.#neverEarly(call, source)
    if (attempt === 1) this.#inOrder(call)
    this.calls.push(call)
    return call
  }

  end(call: Call, failed: boolean): void {
    call.ended = ++this.#clock
    call.failed = failed
    this.world.note(`${call.member} ends ${nameOf(call)}${failed ? ', failed' : ''}`)
    this.#first.get(this.#orderOf(call))?.running.delete(call)
    if (failed) return
    this.#handled.add(placeOf({ topic: this.stage.topic, partition: call.partition, offset: call.offset }))
    this.#done.add(call.source)
  }

  /** P2, by what the broker holds. */
  #neverEarly(call: Call, { topic, partition, offset }: Source): void {
    if (call.tier === 'main') return
    const record = this.world.kafka.records(topic, partition).find((one) => String(one.offset) === offset)
    const due = record?.headers.find(([name]) => name === 'x-due-at')?.[1]
    const early = Number(due?.toString()) - this.world.kafka.clock.now()
    if (early > 0) this.world.broken('P2', `${nameOf(call)} began ${early} ms before it was due`)
    if (Number.isNaN(early)) this.world.broken('P2', `${nameOf(call)}: ${call.source} has no due time`)
  }

  #orderOf({ member, partition, key }: Call): string {
    return `${member} ${partition} ${this.stage.ordering === 'key' ? key : ''}`
  }

  /** P6 within one member, as it happens: one at a time, and forwards. */
  #inOrder(call: Call): void {
    if (this.stage.ordering === 'unordered' || (this.stage.ordering === 'key' && call.key === null)) return
    const order = this.#orderOf(call)
    let of = this.#first.get(order)
    // What still runs of an earlier tenure is late, whatever it does.
    if (of?.tenure !== call.tenure)
      this.#first.set(order, (of = { running: new Set(), last: -1n, tenure: call.tenure }))
    const [other] = of.running
    if (other) this.world.broken('P6', `${nameOf(call)} began while ${nameOf(other)} ran`)
    if (call.offset <= of.last) this.world.broken('P6', `${nameOf(call)} began after ${of.last}`)
    of.running.add(call)
    of.last = call.offset
  }

  /** P1 and P7, at the moment at which the broker takes a commit. */
  #onCommit({ group, topic, partition, offset, memberId }: SeenCommit): void {
    const level = this.#levels.indexOf(topic)
    const where = `${topic}/${partition}`
    // A first position that is committed before the first batch is tried again by kafkajs itself, in whatever generation
    // then is (DESIGN.md, known limits): records may come again by it, none is lost.
    if (offset === 0n) {
      this.#committed.set(where, 0n)
      return
    }
    const before = this.#committed.get(where) ?? 0n
    if (offset < before) this.world.broken('P7', `${where} was committed at ${offset} by ${memberId} after ${before}`)
    const owner = this.world.kafka.broker
      .members(group)
      .find(({ assignment }) => assignment[topic]?.includes(partition))
    // A transaction carries no member: what keeps others from it is its id, which the end of the run looks after.
    const isTransaction = memberId === '' && this.stage.delivery === 'exactly-once'
    if (owner?.memberId !== memberId && !isTransaction) {
      this.world.broken('P7', `${where} was committed by ${memberId}, and belongs to ${owner?.memberId ?? 'nobody'}`)
    }
    const records = this.world.kafka.records(topic, partition)
    for (const record of records) {
      if (record.offset < before || record.offset >= offset) continue
      const source = placeOf({ topic, partition, offset: record.offset })
      if (this.#done.has(source)) continue
      const [p, o] = level === 0 ? [partition, String(record.offset)] : originOf(record.headers)
      const next = this.#levels.slice(level + 1)
      if (next.some((one) => this.#acknowledged.has(`${one} ${p}@${o}`))) continue
      if (this.stage.delivery === 'exactly-once' && next.some((one) => this.#stands(one, p, o))) continue
      this.world.broken(
        'P1',
        `${where} was committed at ${offset}; ${source} is neither handled nor acknowledged elsewhere`,
      )
    }
    if (offset > before) this.#committed.set(where, offset)
    if (offset > (this.#highest.get(where) ?? 0n)) this.#highest.set(where, offset)
  }

  /** Whether a reader of committed records sees a copy of it there. */
  #stands(topic: string, partition: number, offset: string): boolean {
    return this.world.kafka.records(topic).some(({ headers }) => {
      const [p, o] = originOf(headers)
      return p === partition && o === offset
    })
  }

  /** Whether every group has committed all that stands on its topics. */
  get settled(): boolean {
    return this.waitingFor === undefined
  }

  get waitingFor(): string | undefined {
    for (const topic of this.#levels.slice(0, -1)) {
      const ends = new Map<number, bigint>()
      for (const { partition, offset } of this.world.kafka.records(topic)) ends.set(partition, offset + 1n)
      for (const [partition, end] of ends) {
        const at = this.#highest.get(`${topic}/${partition}`) ?? 0n
        if (at < end) return `${topic}/${partition} is committed at ${at} of ${end}`
      }
    }
    return undefined
  }

  /** What must hold once everything is committed. */
  close(): void {
    this.#nothingLost()
    if (this.stage.delivery === 'exactly-once') this.#eachHopOnce()
    this.#strictOrder()
    this.#duplicates()
  }

  #nothingLost(): void {
    const dead = new Set(
      this.world.kafka.records(`${this.stage.topic}.dlq`).map(({ headers }) => originOf(headers).join('@')),
    )
    for (const [place, value] of this.#places) {
      const isDead = dead.has(place.slice(this.stage.topic.length + 1))
      const isHandled = this.#handled.has(place)
      const bad = ['fatal', 'hopeless'].includes(this.fates.get(value) ?? '')
      if (isDead !== bad || isHandled === bad) {
        this.world.broken(
          'P1',
          `${place} (${this.fates.get(value)}) was ${isHandled ? '' : 'not '}handled and is ${isDead ? '' : 'not '}on the dead letter topic`,
        )
      }
    }
  }

  #eachHopOnce(): void {
    for (const topic of this.#levels.slice(1)) {
      const seen = new Set<string>()
      for (const { headers } of this.world.kafka.records(topic)) {
        const origin = originOf(headers).join('@')
        if (seen.has(origin)) this.world.broken('P1', `the copy of ${origin} stands twice on ${topic}`)
        seen.add(origin)
      }
    }
  }

  /** P6 over all members: of records whose first attempt was made once, each begins when the one before has ended. */
  #strictOrder(): void {
    if (this.stage.ordering === 'unordered') return
    const lines = new Map<string, Call[]>()
    const times = new Map<string, number>()
    for (const call of this.calls) {
      if (call.attempt !== 1) continue
      times.set(call.source, (times.get(call.source) ?? 0) + 1)
      if (this.stage.ordering === 'key' && call.key === null) continue
      const line = `${call.partition} ${this.stage.ordering === 'key' ? call.key : ''}`
      lines.set(line, [...(lines.get(line) ?? []), call])
    }
    for (const line of lines.values()) {
      const once = line.filter(({ source }) => times.get(source) === 1).sort((a, b) => Number(a.offset - b.offset))
      for (const [i, call] of once.entries()) {
        const before = once[i - 1]
        if (before && call.began < (before.ended ?? Infinity)) {
          this.world.broken(
            'P6',
            `${nameOf(call)} (${call.member}) began before ${nameOf(before)} (${before.member}) had ended`,
          )
        }
      }
    }
  }

  /** P7: a copy is handled again only by another member, or by one that had lost it in between. */
  #duplicates(): void {
    const bySource = new Map<string, Call[]>()
    for (const call of this.calls) bySource.set(call.source, [...(bySource.get(call.source) ?? []), call])
    for (const calls of bySource.values()) {
      for (const [i, call] of calls.entries()) {
        const same = calls.slice(0, i).find(({ member, tenure }) => member === call.member && tenure === call.tenure)
        if (same) this.world.broken('P7', `${nameOf(call)} was handled twice by ${call.member}, which had lost nothing`)
      }
    }
  }
}

function originOf(headers: readonly (readonly [string, Buffer | null])[]): [partition: number, offset: string] {
  const of = (name: string): string => headers.find((header) => header[0] === name)?.[1]?.toString() ?? ''
  return [Number(of('x-original-partition')), of('x-original-offset')]
}

const nameOf = ({ partition, offset, attempt }: Call): string => `${partition}@${offset} attempt ${attempt}`
