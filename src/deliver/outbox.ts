/**
 * Copies on their way to a retry or dead letter topic.
 *
 * Life of a copy:  queued -> in a request -> acknowledged
 *                                         -> refused as too large (alone in its request)
 *                                         -> failed -> waiting -> in a request again, to the same partition ...
 *   - each topic has a queue of its own, so that a topic that is ill holds back nobody else's copies.
 *   - one request of a topic is under way at a time: what fails meanwhile goes out together in the next.
 *   - after a failure the copies of each partition go on by themselves: the healthy ones leave, the ill ones wait.
 *   - close() ends every wait, that for an answer too; what is not acknowledged by then is told so, and its offset stays
 *     uncommitted.
 *
 * Must never happen: a copy is taken for stored without its topic-partition in the answer; one that is in the answer is
 * sent again; a copy changes its partition while that exists; a failed copy is given up other than by close().
 */
import { RetrylineError } from '../errors'
import { errorText, type Emitter } from '../observe'
import type { Clock, Publisher, Random, Timer } from '../ports'
import type { Outgoing } from '../record'
import { fillRequest, notAcknowledged, placeOf } from './requests'
import { sizeOf } from './size'

export type SendResult = 'acknowledged' | 'too-large' | 'closed'

export interface Outbox {
  /**
   * Never rejects. `onTrouble(true)` is called when the first try has failed, `onTrouble(false)` when the copy is
   * through after all, or given up.
   */
  send(record: Outgoing, onTrouble?: (troubled: boolean) => void): Promise<SendResult>
  /** Waits so long; resolves false, and at once, where the outbox is closed. */
  wait(ms: number): Promise<boolean>
  /** Copies that are not through. */
  readonly pending: number
  /** Topics whose last publish has failed, and why. */
  readonly failing: ReadonlyMap<string, string>
  close(): void
}

export interface OutboxOptions {
  readonly publisher: Publisher
  readonly clock: Clock
  readonly random: Random
  readonly emitter: Emitter
  /** After this long a request counts as failed; a late acknowledgement is then a duplicate at worst. ms. */
  readonly timeoutMs: number
  isTooLarge(error: unknown): boolean
  /** The present partition count of a topic; undefined where it is missing. */
  countPartitions(topic: string): Promise<number | undefined>
}

const BACKOFF = { firstMs: 100, maxMs: 10_000 }
/** From this many failures in a row on, each starts on a new connection: some faults of a connection never mend. */
const RESET_AFTER = 3

interface Copy {
  record: Outgoing
  readonly bytes: number
  readonly done: (result: SendResult) => void
  readonly onTrouble: ((troubled: boolean) => void) | undefined
  troubled: boolean
  /** It was refused as too large as it is: its producer may have compressed it, and limits are about what is sent. */
  compressed: boolean
}

export function createOutbox(options: OutboxOptions): Outbox {
  const { publisher, clock, random, emitter } = options
  const shelves = new Map<string, { queue: Copy[]; busy: boolean }>()
  const waits = new Set<{ timer: Timer; end: () => void }>()
  /** Topics whose last publish has failed, and why. */
  const failing = new Map<string, string>()
  let pending = 0
  let failuresInRow = 0
  let closed = false

  function send(record: Outgoing, onTrouble?: (troubled: boolean) => void): Promise<SendResult> {
    if (closed) return Promise.resolve('closed')
    return new Promise((resolve) => {
      pending++
      const done = (result: SendResult): void => {
        pending--
        resolve(result)
      }
      const copy: Copy = { record, bytes: sizeOf(record), done, onTrouble, troubled: false, compressed: false }
      let shelf = shelves.get(record.topic)
      if (!shelf) shelves.set(record.topic, (shelf = { queue: [], busy: false }))
      shelf.queue.push(copy)
      if (shelf.busy) return
      shelf.busy = true
      // In a macrotask: what fails close together goes out in one request.
      clock.soon(() => void drain(shelf))
    })
  }

  async function drain(shelf: { queue: Copy[]; busy: boolean }): Promise<void> {
    while (shelf.queue.length > 0) {
      for (const group of byPartition(await attempt(takeBatch(shelf.queue)))) void persist(group)
    }
    shelf.busy = false
  }

  /** Tries again until it is through or the outbox is closed. */
  async function persist(copies: Copy[]): Promise<void> {
    for (let tries = 1; ; tries++) {
      for (const copy of copies) trouble(copy, true)
      if (await wait(backoff(tries))) await mendPartitions(copies)
      copies = await attempt(copies, tries)
      if (copies.length === 0) return
    }
  }

  /** One request. Returns what has failed; what was too large together is dealt with in parts. */
  async function attempt(copies: Copy[], triesBefore = 0): Promise<Copy[]> {
    if (closed) {
      for (const copy of copies) finish(copy, 'closed')
      return []
    }
    const startedAt = clock.monotonic()
    let missing = copies
    try {
      const answer = await withTimeout(
        publisher.publish(
          copies.map(({ record }) => record),
          copies.some(({ compressed }) => compressed),
        ),
      )
      const refused = new Set(answer.filter(({ errorCode }) => errorCode !== 0).map(placeOf))
      const acknowledged = new Set(answer.map(placeOf).filter((place) => !refused.has(place)))
      const through = copies.filter(({ record }) => acknowledged.has(placeOf(record)))
      missing = copies.filter(({ record }) => !acknowledged.has(placeOf(record)))
      if (emitter.active.published && through.length > 0) {
        emitter.emit('published', {
          records: through.length,
          topics: topicsOf(through),
          durationMs: clock.monotonic() - startedAt,
        })
      }
      if (through.length > 0) failing.delete(through[0]!.record.topic)
      for (const copy of through) finish(copy, 'acknowledged')
      if (missing.length > 0) throw notAcknowledged(missing.map(({ record }) => record))
      failuresInRow = 0
      return []
    } catch (error) {
      if (options.isTooLarge(error)) return splitOrRefuse(copies, triesBefore)
      const told = errorText(error)
      failing.set(copies[0]!.record.topic, told)
      emitter.emit('publishFailed', {
        records: missing.length,
        topics: topicsOf(missing),
        error: told,
        tries: triesBefore + 1,
        retryInMs: closed ? 0 : Math.round(backoff(triesBefore + 1, 0.5)),
      })
      // Not waited for: a connection that is ill may take its time to end, and the copies must not.
      if (!closed && ++failuresInRow >= RESET_AFTER) reset()
      return missing
    }
  }

  async function splitOrRefuse(copies: Copy[], tries: number): Promise<Copy[]> {
    const [only] = copies
    if (copies.length === 1) {
      if (!only!.compressed) {
        only!.compressed = true
        return attempt(copies, tries)
      }
      failing.delete(only!.record.topic)
      finish(only!, 'too-large')
      return []
    }
    const half = copies.length >> 1
    const failed: Copy[] = []
    for (const part of [copies.slice(0, half), copies.slice(half)]) failed.push(...(await attempt(part, tries)))
    return failed
  }

  function reset(): void {
    publisher.reset().catch((error: unknown) => {
      emitter.emit('problem', { where: 'giving up a connection', error: errorText(error) })
    })
  }

  async function withTimeout<T>(work: Promise<T>): Promise<T> {
    let over = (): void => undefined
    const late = new Promise<never>((_, reject) => {
      const fail = (why: string): void => reject(new RetrylineError('RETRYLINE_PUBLISH', why))
      const timer = clock.after(
        options.timeoutMs,
        () => {
          reset()
          fail(`no answer to a publish within ${options.timeoutMs} ms`)
        },
        'deadline',
      )
      const entry = { timer, end: () => fail('closed before the answer to a publish came') }
      waits.add(entry)
      over = () => {
        timer.cancel()
        waits.delete(entry)
      }
    })
    try {
      return await Promise.race([work, late])
    } finally {
      over()
    }
  }

  /** A topic made anew with fewer partitions: only then may a copy move, or it would wait for ever. */
  async function mendPartitions(copies: Copy[]): Promise<void> {
    const { topic } = copies[0]!.record
    let count: number | undefined
    try {
      count = await options.countPartitions(topic)
    } catch {
      return // the broker does not answer: the next try will say so
    }
    if (count === undefined) return
    for (const copy of copies) {
      if (copy.record.partition >= count) copy.record = { ...copy.record, partition: copy.record.partition % count }
    }
  }

  function wait(ms: number): Promise<boolean> {
    if (closed) return Promise.resolve(false)
    return new Promise((resolve) => {
      const entry = {
        timer: clock.after(ms, () => {
          waits.delete(entry)
          resolve(true)
        }),
        end: () => resolve(false),
      }
      waits.add(entry)
    })
  }

  function backoff(tries: number, chance = random()): number {
    const step = Math.min(BACKOFF.firstMs * 2 ** (tries - 1), BACKOFF.maxMs)
    return step * (0.5 + chance / 2)
  }

  return {
    send,
    wait,
    failing,
    get pending() {
      return pending
    },
    close() {
      closed = true
      for (const { timer, end } of waits) {
        timer.cancel()
        end()
      }
      waits.clear()
    },
  }
}

function finish(copy: Copy, result: SendResult): void {
  trouble(copy, false)
  copy.done(result)
}

function trouble(copy: Copy, troubled: boolean): void {
  if (copy.troubled === troubled) return
  copy.troubled = troubled
  copy.onTrouble?.(troubled)
}

function takeBatch(queue: Copy[]): Copy[] {
  return queue.splice(0, fillRequest(queue))
}

function byPartition(copies: readonly Copy[]): Copy[][] {
  const groups = new Map<number, Copy[]>()
  for (const copy of copies) {
    const group = groups.get(copy.record.partition)
    if (group) group.push(copy)
    else groups.set(copy.record.partition, [copy])
  }
  return [...groups.values()]
}

function topicsOf(copies: readonly Copy[]): string[] {
  return [...new Set(copies.map(({ record }) => record.topic))]
}
