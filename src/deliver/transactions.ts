/**
 * What one partition publishes exactly once: copies and sent records go out in transactions, together with the offset that
 * says that the records they come from are done.
 *
 * States:  lost -> taking over -> asked -> idle -> due -> open -> idle
 *                      ^                                   └──> lost (anything failed; what it held is in doubt)
 *   - `lost`: the transactional id is not ours, or the producer is not to be trusted any more.
 *   - `asked`: the id is ours, so nobody else can end a transaction of it any more. Whoever holds these reads what the group
 *     has committed and says so by `verified()`: what was in doubt stands if that is what its transaction would have written,
 *     and goes back into the queue if not.
 *   - `open`: one transaction, which took all that was staged. What is staged meanwhile goes into the next.
 *   - `closed`: from any state, for good. What is not through is told so. An open transaction is never committed.
 *
 * Must never happen: two transactions at once; one committed after `close()`, or without every topic-partition in an answer;
 * outputs published again whose transaction was committed; an entry settled whose transaction was not.
 */
import { RetrylineError } from '../errors'
import { errorText, type Emitter } from '../observe'
import type { Clock, CommitEntry, Random, Timer, TopicPartition, Transactor } from '../ports'
import type { Outgoing } from '../record'
import type { SendResult } from './outbox'
import { notAcknowledged, notIn, requestsOf } from './requests'
import { sizeOf } from './size'
import { signal, within } from './within'

export interface Transactions<E> {
  /** Never rejects. Resolves when the transaction that holds the records is committed, and the entry settled with it. */
  stage(entry: E, records: readonly Outgoing[], onTrouble?: (troubled: boolean) => void): Promise<SendResult>
  /** Resolves when the id is ours and no transaction is under way, or when they are closed. */
  takeOver(): Promise<void>
  /** Whether what the group has committed may be read now, and counts. */
  readonly ready: boolean
  /** What the group has committed, read after `takeOver()`. */
  verified(committed: Offset | undefined): void
  /** Something has changed that a transaction may wait for. */
  poke(): void
  /** Entries that are not through. */
  readonly pending: number
  /** Why the id could not be taken over, while it is tried again. */
  readonly refused: string | undefined
  /** What is staged cannot go before something else is done. */
  readonly blocked: boolean
  /** Resolves when nothing of it is left. */
  close(): Promise<void>
}

export interface Offset {
  readonly offset: bigint
  readonly metadata: string
}

export interface TransactionsOptions<E, C extends Offset = Offset> extends TopicPartition {
  readonly transactor: Transactor
  readonly transactionalId: string
  readonly clock: Clock
  readonly random: Random
  readonly emitter: Emitter
  readonly groupId: string
  readonly tier: string
  /** After this long a transaction counts as failed, ms. */
  readonly timeoutMs: number
  isTooLarge(error: unknown): boolean
  isFenced(error: unknown): boolean
  /** The present partition count of a topic; undefined where it is missing. */
  countPartitions(topic: string): Promise<number | undefined>
  /** Takes part in taking over: bounds how many do so at once. */
  gate<T>(work: () => Promise<T>): Promise<T>
  /** The id is ours anew. */
  taken(): void
  /** Whether a transaction may begin now; where not, `poke()` follows. */
  mayBegin(): boolean
  /** What is committed once these are settled too; undefined where that cannot be said now, and `poke()` follows. */
  commitOf(entries: readonly E[]): C | undefined
  /** From here on nothing else may commit the partition's offset, until `settled` or `lost` and what follows it. */
  began(commit: C): void
  /** The transaction is committed. */
  settled(entries: readonly E[], commit: C): void
  /** The transaction with this commit was given up, and it is known that nothing of it counts. */
  aborted(commit: C): void
  /** Nothing is in doubt any more, and nothing was settled. */
  ended(): void
  /** It has failed, if only for now. */
  failed(error: unknown): void
  /** There is no room to say that any of what is staged is done: something else must be done first. */
  blocked(): void
  /** `takeOver()` and `verified()` are to follow. */
  lost(): void
  /** Nothing follows. */
  closed(): void
}

const BACKOFF = { firstMs: 100, maxMs: 10_000 }
/** A transaction begun right behind another one is refused until the marks of that one stand, ms. */
const APART_MS = 20
const MAX_ENTRIES = 1_000
/** So many that are larger than the others are blamed at once where something is too large. */
const FEW = 8
const MAX_BYTES = 8 * 1024 * 1024

interface Staged<E> {
  readonly entry: E
  records: readonly Outgoing[]
  readonly bytes: number
  readonly done: (result: SendResult) => void
  readonly onTrouble: ((troubled: boolean) => void) | undefined
  troubled: boolean
  /** In a transaction of so many entries at most: halved where one failed, to find the entry that is to blame. */
  most: number
  /** By itself, each record in a request of its own, compressed: it was refused as too large otherwise. */
  apart: boolean
}

export function createTransactions<E, C extends Offset>(options: TransactionsOptions<E, C>): Transactions<E> {
  const { transactor, clock, random, emitter, topic, partition, tier } = options
  let state: 'lost' | 'taking' | 'asked' | 'idle' | 'due' | 'open' | 'closed' = 'lost'
  let queue: Staged<E>[] = []
  /** What the open transaction holds, or the one in doubt. */
  let held: readonly Staged<E>[] = []
  /** What the transaction of these would have committed. */
  let heldCommit: C | undefined
  /** Whether the broker was asked to commit it. */
  let isInDoubt = false
  let refused: string | undefined
  /** Nothing of what is staged could be said in a commit. */
  let blocked = false
  let taking: Promise<void> | undefined
  let failures = 0
  let endedAt = -Infinity
  let timer: Timer | undefined
  const closing = signal()
  const isClosed = (): boolean => state === 'closed'

  function stage(entry: E, records: readonly Outgoing[], onTrouble?: (troubled: boolean) => void): Promise<SendResult> {
    if (isClosed()) return Promise.resolve('closed')
    return new Promise((done) => {
      const bytes = records.reduce((sum, record) => sum + sizeOf(record), 0)
      queue.push({ entry, records, bytes, done, onTrouble, troubled: false, most: MAX_ENTRIES, apart: false })
      poke()
    })
  }

  // ── the id ───────────────────────────────────────────────────────────────────────────────────────────────────────

  function takeOver(): Promise<void> {
    if (state === 'lost') {
      state = 'taking'
      taking = takeOverAtLast()
    }
    return taking ?? Promise.resolve()
  }

  async function takeOverAtLast(): Promise<void> {
    if (failures > 0) await wait(backoff(failures))
    for (let tries = 1; !isClosed(); tries++) {
      try {
        await options.gate(async () => {
          if (!isClosed()) await limited(transactor.takeOver(), 'taking a transactional id over')
        })
        refused = undefined
        if (isClosed()) return
        state = 'asked'
        // Before anybody compares what the broker holds with it.
        if (!isInDoubt) abort()
        options.taken()
        return
      } catch (error) {
        if (isClosed()) return
        refused = errorText(error)
        emitter.emit('problem', {
          where: `taking the transactional id '${options.transactionalId}' over; ${topic}/${partition} waits`,
          error: refused,
        })
        void transactor.reset()
        await wait(backoff(tries))
      }
    }
  }

  function verified(committed: Offset | undefined): void {
    if (state !== 'asked') {
      poke()
      return
    }
    state = 'idle'
    const [items, expected] = [held, heldCommit]
    held = []
    if (expected !== undefined && committed?.offset === expected.offset && committed.metadata === expected.metadata) {
      heldCommit = undefined
      isInDoubt = false
      through(items, expected)
    } else {
      abort()
      if (items.length > 0) options.ended()
      queue = [...queue, ...items]
    }
    poke()
  }

  function abort(): void {
    const commit = heldCommit
    heldCommit = undefined
    isInDoubt = false
    if (commit !== undefined) options.aborted(commit)
  }

  // ── transactions ─────────────────────────────────────────────────────────────────────────────────────────────────

  function poke(): void {
    if (state !== 'idle' || queue.length === 0 || !options.mayBegin()) return
    state = 'due'
    // In a macrotask at least: what fails close together goes out together.
    const rest = endedAt + APART_MS - clock.monotonic()
    timer = rest > 0 ? clock.after(rest, begin) : clock.soon(begin)
  }

  function begin(): void {
    timer = undefined
    if (state !== 'due') return
    state = 'idle'
    if (!options.mayBegin()) return
    const taken = take()
    blocked = taken === undefined
    if (taken === undefined) {
      options.blocked()
      return
    }
    state = 'open'
    taking = run(taken.items, taken.commit)
  }

  /** As many as may go together, and whose settling can be said in a commit. */
  function take(): { items: Staged<E>[]; commit: C } | undefined {
    let items: Staged<E>[] = []
    let bytes = 0
    let most = MAX_ENTRIES
    for (const item of queue) {
      most = Math.min(most, item.apart ? 1 : item.most)
      if (items.length > 0 && (items.length >= most || bytes + item.bytes > MAX_BYTES)) break
      bytes += item.bytes
      items.push(item)
    }
    let commit = items.length > 0 ? options.commitOf(items.map(({ entry }) => entry)) : undefined
    for (let i = 0; commit === undefined && i < queue.length; i++) {
      items = [queue[i]!]
      commit = options.commitOf([queue[i]!.entry])
    }
    if (commit === undefined) return undefined
    const taken = new Set(items)
    queue = queue.filter((item) => !taken.has(item))
    return { items, commit }
  }

  async function run(items: Staged<E>[], commit: C): Promise<void> {
    const startedAt = clock.monotonic()
    held = items
    heldCommit = commit
    options.began(commit)
    // Given up for want of time, it goes on all the same until it looks: what it has is queued again by then.
    const isStale = (): boolean => isClosed() || held !== items || state !== 'open'
    const steps = async (): Promise<void> => {
      if (failures > 0) await mendPartitions(items)
      if (isStale()) throw given()
      const open = await transactor.begin()
      const [first] = items
      for (const request of requestsOf(
        items.flatMap(({ records }) => records),
        first!.apart,
      )) {
        if (isStale()) throw given()
        const answer = await open.publish(request, first!.apart)
        const missing = notIn(answer, request)
        if (missing.length > 0) throw notAcknowledged(missing)
      }
      if (isStale()) throw given()
      const entry: CommitEntry = { topic, partition, offset: commit.offset, metadata: commit.metadata }
      await open.sendOffset(options.groupId, entry)
      if (isStale()) throw given()
      isInDoubt = true
      await open.commit()
    }
    try {
      await limited(steps(), 'a transaction')
    } catch (error) {
      // Not aborted: a request that is still on its way might come after the abort, and open what nobody ends. Who takes the
      // id over aborts it under a new epoch, which refuses such a request.
      if (isClosed()) return
      failed(items, error)
      return
    }
    endedAt = clock.monotonic()
    if (isClosed()) return
    failures = 0
    held = []
    heldCommit = undefined
    isInDoubt = false
    state = 'idle'
    tell(items, clock.monotonic() - startedAt)
    through(items, commit)
    // What was together with one that could not be published need not go alone for ever.
    for (const item of queue) item.most = Math.min(MAX_ENTRIES, item.most * 4)
    poke()
  }

  function through(items: readonly Staged<E>[], commit: C): void {
    options.settled(
      items.map(({ entry }) => entry),
      commit,
    )
    for (const item of items) finish(item, 'acknowledged')
  }

  function failed(items: readonly Staged<E>[], error: unknown): void {
    void transactor.reset()
    options.failed(error)
    if (!isInDoubt && options.isTooLarge(error)) {
      const [only] = items
      if (items.length > 1) blame(items)
      else if (!only!.apart) only!.apart = true
      else {
        held = []
        options.ended()
        finish(only!, 'too-large')
      }
    } else {
      failures++
      if (items.length > 1 && failures > 1) for (const item of items) item.most = items.length >> 1
      if (options.isFenced(error)) emitter.emit('fenced', { tier, topic, partition })
      for (const item of items) trouble(item, true)
      emitter.emit('publishFailed', {
        records: items.reduce((sum, { records }) => sum + records.length, 0),
        topics: topicsOf(items),
        error: errorText(error),
        tries: failures,
        retryInMs: Math.round(backoff(failures, 0.5)),
      })
    }
    state = 'lost'
    taking = undefined
    options.lost()
  }

  /** Each failed transaction costs a take-over, so those that stand out are the first to go by themselves. */
  function blame(items: readonly Staged<E>[]): void {
    const most = Math.max(...items.map(({ bytes }) => bytes))
    const large = items.filter(({ bytes }) => 2 * bytes > most)
    if (large.length <= FEW && large.length < items.length) for (const item of large) item.apart = true
    else for (const item of items) item.most = items.length >> 1
  }

  function tell(items: readonly Staged<E>[], durationMs: number): void {
    if (emitter.active.published) {
      const records = items.reduce((sum, item) => sum + item.records.length, 0)
      emitter.emit('published', { records, topics: topicsOf(items), durationMs })
    }
    if (emitter.active.committed) emitter.emit('committed', { tier, partitions: 1, durationMs })
  }

  /** A topic made anew with fewer partitions: only then may a record move, or it would wait for ever. */
  async function mendPartitions(items: readonly Staged<E>[]): Promise<void> {
    for (const name of topicsOf(items)) {
      let count: number | undefined
      try {
        count = await options.countPartitions(name)
      } catch {
        return // the broker does not answer: the transaction will say so
      }
      if (count === undefined) continue
      for (const item of items) {
        item.records = item.records.map((record) =>
          record.topic === name && record.partition >= count
            ? { ...record, partition: record.partition % count }
            : record,
        )
      }
    }
  }

  function limited<T>(work: Promise<T>, what: string): Promise<T> {
    return within(clock, options.timeoutMs, closing, work, (why) =>
      why === 'late'
        ? new RetrylineError('RETRYLINE_PUBLISH', `no answer to ${what} within ${options.timeoutMs} ms`)
        : given(),
    )
  }

  function wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        waiting.cancel()
        off()
        resolve()
      }
      const waiting = clock.after(ms, end)
      const off = closing.on(end)
    })
  }

  function backoff(tries: number, chance = random()): number {
    const step = Math.min(BACKOFF.firstMs * 2 ** (tries - 1), BACKOFF.maxMs)
    return step * (0.5 + chance / 2)
  }

  function given(): RetrylineError {
    return new RetrylineError('RETRYLINE_STATE', `${topic}/${partition} was given up before its transaction was over`)
  }

  return {
    stage,
    takeOver,
    get ready() {
      return state === 'asked' || state === 'idle' || state === 'due'
    },
    verified,
    poke,
    get pending() {
      return queue.length + held.length
    },
    get refused() {
      return refused
    },
    get blocked() {
      return blocked
    },
    async close() {
      if (!isClosed()) {
        state = 'closed'
        timer?.cancel()
        closing.give()
        options.closed()
        const left = [...held, ...queue]
        held = queue = []
        for (const item of left) finish(item, 'closed')
      }
      await transactor.disconnect()
    },
  }
}

function finish<E>(item: Staged<E>, result: SendResult): void {
  trouble(item, false)
  item.done(result)
}

function topicsOf<E>(items: readonly Staged<E>[]): string[] {
  return [...new Set(items.flatMap(({ records }) => records.map(({ topic }) => topic)))]
}

function trouble<E>(item: Staged<E>, troubled: boolean): void {
  if (item.troubled === troubled) return
  item.troubled = troubled
  item.onTrouble?.(troubled)
}
