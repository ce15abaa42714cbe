import { type Entry, Lane } from '../../../src/consume/lane'
import { createEmitter, type Emitter, type RetrylineEvent } from '../../../src/observe'
import { silentLogger, type Clock } from '../../../src/ports'
import type { Message } from '../../../src/record'

export function lane(partition = 0, options: { topic?: string; gated?: boolean } = {}): Lane {
  const { topic = 'orders', gated = false } = options
  return new Lane(topic, partition, gated ? '1m' : 'main', gated, undefined)
}

export function message(offset: bigint | number, fields: Partial<Message> = {}): Message {
  return {
    key: null,
    value: Buffer.from('v'),
    timestamp: '1700000000000',
    offset: `${offset}`,
    attributes: 0,
    ...fields,
  }
}

let seq = 0

export function entry(offset: bigint | number, fields: Partial<Entry> = {}): Entry {
  return {
    message: message(offset),
    offset: `${offset}`,
    bytes: 1,
    seq: seq++,
    dueAt: 0,
    orderKey: '',
    settled: false,
    tail: undefined,
    opened: undefined,
    openedAt: undefined,
    replayed: false,
    ...fields,
  }
}

/** An emitter, and what it has emitted. */
export function recorder(clock: Clock): { emitter: Emitter; events: RetrylineEvent[]; of: (type: string) => any[] } {
  const events: RetrylineEvent[] = []
  const emitter = createEmitter({ groupId: 'billing', logger: silentLogger, clock })
  emitter.on('all', (event) => {
    events.push(event)
  })
  return { emitter, events, of: (type) => events.filter((event) => event.type === type) }
}

/** A promise that the test settles. */
export interface Held<T> {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(error: unknown): void
}

export function hold<T = void>(): Held<T> {
  let resolve!: (value: T) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

/** Whether the promise has settled by now. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol('open')
  const first = await Promise.race([
    promise.catch(() => undefined),
    new Promise((resolve) => setImmediate(resolve, open)),
  ])
  return first !== open
}
