/**
 * The way of one record, in order: whose it is, decode, handler, judge, route, copy, settle. Every step that can fail
 * ends in a copy on another topic or leaves the record unsettled; none throws.
 */
import { describeError, type Classifier, type HoldVerdict, type Verdict } from '../classify'
import type { Settings } from '../config'
import type { Outbox, SendResult } from '../deliver'
import { isRetrylineError, RetrylineError } from '../errors'
import { errorText, type Emitter, type EventOf } from '../observe'
import type { Clock, Random } from '../ports'
import { copyHeaders, toRec, type BatchHandler, type Handler, type HandlerMessage, type Outgoing } from '../record'
import {
  composeCopy,
  decideRoute,
  openMain,
  partitionForKey,
  partitionOf,
  toDeadLetter,
  type Decision,
  type Handled,
  type Rejected,
} from '../route'
import type { Topology } from '../topology'
import type { Attempt, SentResult } from './attempt'
import { BatchQueue } from './batch-queue'
import { createBatchRunner } from './batch-runner'
import type { DeadLetterLimit } from './dead-letter-limit'
import type { Decoder } from './decode'
import type { Entry, Lane, Outcome } from './lane'
import type { LaneHost, Outages } from './outages'
import {
  attemptFields,
  classifyContext,
  createAttemptRunner,
  placeOf,
  startedLate,
  type AttemptRunner,
} from './run-attempt'
import type { Staged } from './staged'

/** How long to wait before a record that fits nowhere is offered to the dead letter topic again, ms. */
const STUCK_RETRY_MS = 30_000
/** How long to wait before the partitions of a topic, or the limit to dead letters, are looked at again, ms. */
const LOOK_AGAIN_MS = 5_000

export interface ProcessorOptions {
  readonly settings: Settings
  readonly topology: Topology
  readonly classifier: Classifier
  readonly decoder: Decoder | undefined
  readonly outbox: Outbox
  readonly clock: Clock
  readonly random: Random
  readonly emitter: Emitter
  readonly frameName: string
  readonly countPartitions: (topic: string) => Promise<number>
  /** The handler's place is free again, and what waits behind the record's key may start. */
  readonly released: (lane: Lane, entry: Entry) => void
  /** For records whose dependency is down. */
  readonly host: LaneHost
  readonly outages: Outages
  readonly limit: DeadLetterLimit | undefined
  /** The record is done with: its offset may be committed. */
  readonly settled: (lane: Lane, entry: Entry) => void
  /** In place of `released`: the record is to be handled once more, by this lane, before what waits behind its key. */
  readonly again: (lane: Lane, entry: Entry) => void
  /** In place of `released`: the lane's next record takes over the handler's place; undefined where it is given back. */
  readonly nextInPlace: (lane: Lane, entry: Entry) => Entry | undefined
  /** About the present time, monotonic, ms. */
  readonly now: () => number
  /** Something changed that decides whether the lane may start records. */
  readonly laneChanged: (lane: Lane) => void
  readonly stopping: () => boolean
  /** These records are handled by one call, on one place of the handler's concurrency. */
  readonly together: (lane: Lane, entries: readonly Entry[]) => void
}

export interface Processor {
  readonly runner: Pick<AttemptRunner, 'watchdog'>
  /** Takes a place of the handler's concurrency until `released`. */
  start(lane: Lane, entry: Entry): void
  /** In place of `start`, for a record that has taken so many processes down: it becomes a dead letter. */
  crashLoop(lane: Lane, entry: Entry, deaths: number): boolean
  /** In place of `start`: the record goes back to its place. */
  postpone(lane: Lane, entry: Entry): void
}

interface Failure {
  readonly error: unknown
  readonly timedOut: boolean
  readonly latenessMs: number | undefined
}

type AttemptOutcome = EventOf<'attempt'>['outcome']

/** A failure, and what is to become of the record. */
interface Judged extends Failure {
  readonly opened: Handled | Rejected
  readonly decision: Decision
  readonly because: string
  /** ms since the epoch. */
  readonly at: number
}

export function createProcessor(options: ProcessorOptions): Processor {
  const { settings, topology, classifier, decoder, outbox, clock, random, emitter, countPartitions } = options
  const forRunner = {
    handlerTimeoutMs: settings.handlerTimeoutMs,
    maxAttempts: topology.maxAttempts,
    clock,
    emitter,
    logger: settings.logger,
    frameName: options.frameName,
    ended,
    pauseChanged: options.laneChanged,
    stopping: options.stopping,
  }

  function createOneByOne(handler: Handler): Pick<Processor, 'runner' | 'start'> {
    const { immediate } = settings
    const runner = createAttemptRunner({
      ...forRunner,
      handler,
      immediate,
      classifier,
      now: options.now,
      succeeded({ lane, entry }) {
        options.limit?.settled()
        options.settled(lane, entry)
        const next = options.nextInPlace(lane, entry)
        if (next === undefined || isPlain(lane, next)) return next
        start(lane, next)
        return undefined
      },
    })
    function start(lane: Lane, entry: Entry): void {
      if (isForHandler(lane, entry)) runner.start(lane, entry, decoder && decode(decoder, lane, entry))
    }
    return { runner, start }
  }

  function createTogether(handler: BatchHandler): Pick<Processor, 'runner' | 'start'> {
    const runner = createBatchRunner({ ...forRunner, handler })
    return {
      runner,
      start(lane, first) {
        const entries = [first, ...(lane.queue as BatchQueue<Entry>).along(first)]
        options.together(lane, entries)
        const call = runner.open(lane)
        for (const entry of entries) {
          if (isForHandler(lane, entry)) runner.add(call, entry, decoder && decode(decoder, lane, entry))
        }
        runner.run(call)
      },
    }
  }

  /** False where the record is dealt with otherwise. */
  function isForHandler(lane: Lane, entry: Entry): boolean {
    const running = lane.unfinished?.get(entry.offset) as Attempt | undefined
    if (running) {
      // Delivered again (a rejoin, a crash of the client) while its first call is under way here.
      emitter.emit('skipped', { ...placeOf({ lane, entry }), why: 'joined' })
      ;(running.joiners ??= []).push((outcome) => conclude(lane, entry, outcome, running))
      return false
    }
    if (entry.opened?.kind === 'reject') {
      const judged = judgeRejected(entry.opened)
      if (mayGo(judged)) carryOn(lane, entry, () => carry(lane, entry, judged))
      else options.again(lane, entry)
      return false
    }
    if (!entry.replayed || openReplay(lane, entry)) return true
    options.settled(lane, entry)
    options.released(lane, entry)
    return false
  }

  function crashLoop(lane: Lane, entry: Entry, deaths: number): boolean {
    if (entry.replayed && !openReplay(lane, entry)) {
      options.settled(lane, entry)
      options.released(lane, entry)
      return true
    }
    const rec = toRec(lane.topic, lane.partition, entry.message)
    const opened = entry.opened ?? (openMain(rec, topology) as Handled)
    const decision = toDeadLetter({ main: opened.main, attempt: opened.attempt, topology }, 'crash-loop')
    const because = `${deaths} processes died while this record was at work`
    const error = new RetrylineError('RETRYLINE_CRASH_LOOP', because)
    const judged: Judged = {
      error,
      timedOut: false,
      latenessMs: undefined,
      opened,
      decision,
      because,
      at: clock.now(),
    }
    if (!mayGo(judged)) {
      options.again(lane, entry)
      return false
    }
    emitter.emit('crashLoop', { ...placeOf({ lane, entry }), deaths })
    carryOn(lane, entry, () => carry(lane, entry, judged))
    return true
  }

  function postpone(lane: Lane, entry: Entry): void {
    if (lane.closed) options.released(lane, entry)
    else if (!options.outages.ended(lane, entry, true)) options.again(lane, entry)
  }

  /** Whether nothing has to be looked at before the handler is called. */
  function isPlain(lane: Lane, entry: Entry): boolean {
    return decoder === undefined && lane.unfinished === undefined && !entry.replayed && entry.opened?.kind !== 'reject'
  }

  /** On a main topic our headers count only where a replay set them. False where it is for another group. */
  function openReplay(lane: Lane, entry: Entry): boolean {
    const opened = openMain(toRec(lane.topic, lane.partition, entry.message), topology)
    if (opened.kind === 'skip') {
      emitter.emit('skipped', { ...placeOf({ lane, entry }), why: 'other-group', group: opened.group })
      return false
    }
    // The handler is to see the place where the record first stood, and its null headers as they were.
    if (opened.replay === undefined || entry.opened !== undefined) return true
    entry.opened = opened
    if (opened.problems.length > 0) emitter.emit('envelope', { ...placeOf({ lane, entry }), problems: opened.problems })
    return true
  }

  function decode(decoder: Decoder, lane: Lane, entry: Entry): ReturnType<Decoder> {
    const { message, opened } = entry
    return decoder(message.value, {
      topic: opened?.original.topic ?? lane.topic,
      partition: opened?.original.partition ?? lane.partition,
      key: message.key,
      headers: copyHeaders(message.headers) as HandlerMessage['headers'],
    })
  }

  function ended(attempt: Attempt, outcome: Outcome): void {
    const { lane, entry, joiners = [] } = attempt
    // First this: a record that is to be handled again must find no call to join, or it would join this one for ever.
    conclude(lane, entry, outcome, attempt)
    for (const join of joiners) join(outcome)
  }

  function conclude(lane: Lane, entry: Entry, outcome: Outcome, attempt: Attempt): void {
    if (lane.closed) {
      // Its new owner gets the record again, so a copy of ours would make it two.
      if (attempt.called && attempt.joiners === undefined) {
        emitter.emit('late', { ...placeOf({ lane, entry }), outcome: outcome.kind === 'ok' ? 'ok' : 'failed' })
      }
      options.released(lane, entry)
      return
    }
    if (outcome.kind === 'again') {
      if (!options.outages.ended(lane, entry, true)) options.again(lane, entry)
      return
    }
    if (outcome.kind === 'ok') {
      options.outages.ended(lane, entry, false)
      options.limit?.settled()
      if (attempt.sends !== undefined || attempt.shared !== undefined) {
        carryOn(lane, entry, () => publishStaged(lane, entry, attempt))
        return
      }
      options.settled(lane, entry)
      options.released(lane, entry)
      return
    }
    const latenessMs = startedLate(attempt, clock)
    const failure = { error: outcome.error, timedOut: outcome.kind === 'timeout', latenessMs }
    const { verdict, opened } = classify(lane, entry, failure)
    const judged = judge(failure, verdict, opened)
    if (verdict.kind === 'hold') {
      if (isHeld(lane, entry, verdict, judged, attempt.isEcho)) {
        tellAttempt(attempt, 'held', verdict.because, failure)
        return
      }
    } else options.outages.ended(lane, entry, false)
    if (isToBeSplit(judged, attempt)) {
      tellAttempt(attempt, 'again', judged.because, failure)
      splitFrom(lane, entry, attempt)
      options.again(lane, entry)
      return
    }
    const goes = mayGo(judged)
    const became = failure.timedOut ? 'timeout' : judged.decision.kind
    tellAttempt(attempt, goes ? became : 'again', judged.because, failure)
    if (goes) carryOn(lane, entry, () => carry(lane, entry, judged))
    else options.again(lane, entry)
  }

  /** No record is dead-lettered for an error that may be another's: they come again in halves, until each stands alone. */
  function isToBeSplit({ decision }: Judged, { together }: Attempt): boolean {
    return decision.kind === 'dead-letter' && together > 1
  }

  function splitFrom({ queue }: Lane, entry: Entry, { together }: Attempt): void {
    if (queue instanceof BatchQueue) queue.limit(entry, Math.ceil(together / 2))
  }

  function isHeld(lane: Lane, entry: Entry, verdict: HoldVerdict, { decision }: Judged, isEcho: boolean): boolean {
    if (!options.stopping()) {
      return options.outages.holds(options.host, lane, entry, verdict, decision.kind === 'dead-letter', isEcho)
    }
    // The next owner finds out for itself.
    options.again(lane, entry)
    return true
  }

  /** Where no more may be dead-lettered, the record is to stay where it is. */
  function mayGo({ decision }: Pick<Judged, 'decision'>): boolean {
    return decision.kind !== 'dead-letter' || (options.limit?.allows() ?? true)
  }

  /** For a record that has no handler's place to be given back: it waits where it is. False where it is the next owner's. */
  async function untilMayGo(lane: Lane, judged: Pick<Judged, 'decision'>): Promise<boolean> {
    while (!mayGo(judged)) if (!(await stuck(lane, LOOK_AGAIN_MS))) return false
    return true
  }

  function tellAttempt(attempt: Attempt, outcome: AttemptOutcome, because: string, { error }: Failure): void {
    if (!attempt.called || !emitter.active.attempt) return
    const { name: errorClass } = describeError(error, { stackBytes: 0 })
    emitter.emit('attempt', { ...attemptFields(attempt, clock), outcome, because, errorClass })
  }

  /** The handler's place is free; what is still to be done for the record is counted, since a stop waits for it. */
  function carryOn(lane: Lane, entry: Entry, work: () => Promise<void>): void {
    lane.copies++
    work()
      .catch((error: unknown) => {
        // By construction nothing there throws; should it, the record stays where it is and the fault is told.
        emitter.emit('problem', { where: 'carrying a failed record on', error: errorText(error) })
      })
      .finally(() => {
        lane.copies--
        options.laneChanged(lane)
      })
    options.released(lane, entry)
  }

  /** What the handler gave to ctx.send() must stand before its record is done with. */
  async function publishStaged(lane: Lane, entry: Entry, attempt: Attempt): Promise<void> {
    const { sends, shared } = attempt
    if (shared) shared.published ??= publishAll(lane, entry, shared.messages)
    const results = await Promise.all([sends && publishAll(lane, entry, sends), shared?.published])
    const [failed] = results.filter((result) => typeof result === 'object')
    if (failed === undefined) {
      if (!results.includes('closed')) settleIfOpen(lane, entry)
      return
    }
    const isOwn = failed === results[0]
    await failedAfterwards(lane, entry, failed.error, isOwn ? undefined : attempt)
  }

  async function publishAll(lane: Lane, entry: Entry, sends: readonly Staged[]): Promise<SentResult> {
    let ready: (Outgoing | undefined)[]
    try {
      ready = await Promise.all(sends.map(async (message, i) => toOutgoing(message, entry, lane, i)))
    } catch (error) {
      return { error }
    }
    const known = ready.filter((record) => record !== undefined)
    if (known.length < ready.length) return 'closed'
    const result = await deliver(lane, entry, known)
    if (result === 'too-large') {
      const text = 'a record given to ctx.send() is too large for its topic'
      return { error: new RetrylineError('RETRYLINE_PUBLISH', text) }
    }
    return result === 'closed' ? 'closed' : 'through'
  }

  async function deliver(lane: Lane, entry: Entry, records: Outgoing[]): Promise<SendResult> {
    const onTrouble = troubleOf(lane)
    if (lane.transactions) return lane.transactions.stage(entry, records, onTrouble)
    const results = await Promise.all(records.map((record) => outbox.send(record, onTrouble)))
    return (
      results.find((result) => result === 'too-large') ??
      results.find((result) => result === 'closed') ??
      'acknowledged'
    )
  }

  /**
   * Throws what the handler did wrong. That the cluster does not answer is not its fault: then it is asked again, and the
   * answer is undefined where the record is left to the next owner meanwhile.
   */
  async function toOutgoing(message: Staged, entry: Entry, lane: Lane, index: number): Promise<Outgoing | undefined> {
    const { topic, key, value, headers, partition } = message
    const count = await partitionsOf(lane, topic, 'missing-is-an-error')
    if (count === undefined) return undefined
    const keyless = { key, topic, partition: lane.partition, offset: BigInt(entry.offset) + BigInt(index) }
    const chosen = partition ?? (key === null ? partitionOf(keyless, count) : partitionForKey(key, count))
    if (chosen >= count) {
      throw new RetrylineError('RETRYLINE_PUBLISH', `ctx.send(): partition ${chosen} of '${topic}', which has ${count}`)
    }
    return { topic, partition: chosen, key, value, headers }
  }

  function classify(lane: Lane, entry: Entry, { error }: Failure): { verdict: Verdict; opened: Handled } {
    const rec = toRec(lane.topic, lane.partition, entry.message)
    const opened = (entry.opened as Handled | undefined) ?? (openMain(rec, topology) as Handled)
    return { verdict: classifier(error, classifyContext(lane, entry, opened.attempt, topology.maxAttempts)), opened }
  }

  function judge(failure: Failure, verdict: Verdict, opened: Handled): Judged {
    const now = clock.now()
    const { main, attempt, firstFailedAt } = opened
    const { timedOut } = failure
    // A dependency that is down, for once, is a reason to try again like any other.
    const routed = verdict.kind === 'hold' ? { kind: 'retry' as const } : verdict
    const decision = decideRoute({ main, attempt, firstFailedAt, verdict: routed, timedOut, topology, now, random })
    return { ...failure, opened, decision, because: verdict.because, at: now }
  }

  function judgeRejected(opened: Rejected): Judged {
    const because = opened.problems.join('; ')
    const decision = toDeadLetter({ main: opened.main, attempt: opened.attempt, topology }, opened.reason)
    const error = new RetrylineError('RETRYLINE_UNDECODABLE', `the retry headers make no sense: ${because}`)
    return { error, timedOut: false, latenessMs: undefined, opened, decision, because, at: clock.now() }
  }

  /**
   * What the handler sent could not be: the record itself goes on as one whose handler has failed. `sharedBy`: others of its
   * call have sent the same.
   */
  async function failedAfterwards(lane: Lane, entry: Entry, error: unknown, sharedBy?: Attempt): Promise<void> {
    const failure = { error, timedOut: false, latenessMs: latenessOf(entry) }
    const { verdict, opened } = classify(lane, entry, failure)
    const judged = judge(failure, verdict, opened)
    if (sharedBy !== undefined && isToBeSplit(judged, sharedBy)) {
      if (lane.closed || options.stopping()) return
      splitFrom(lane, entry, sharedBy)
      // Its place and its key are given back already: like a retry it comes after what followed it.
      ;(lane.queue as BatchQueue<Entry>).push(entry)
      return
    }
    if (await untilMayGo(lane, judged)) await carry(lane, entry, judged)
  }

  async function carry(lane: Lane, entry: Entry, judged: Judged): Promise<void> {
    const rec = toRec(lane.topic, lane.partition, entry.message)
    // Only a dead letter tells the stack; one that becomes a dead letter below is too large for it.
    const error = describeError(judged.error, judged.decision.kind === 'dead-letter' ? {} : { stackBytes: 0 })
    const { opened, because, at, latenessMs } = judged
    const failure = { error, because, at, groupId: settings.groupId, release: settings.release, latenessMs }
    let { decision } = judged
    for (;;) {
      const slim = decision.kind === 'dead-letter' && decision.reason === 'too-large'
      const partitions = await partitionsOf(lane, decision.topic)
      if (partitions === undefined) return
      const copy = composeCopy(rec, opened, decision, failure, partitions, { slim })
      const result = await deliver(lane, entry, [copy])
      if (result === 'closed') return
      if (result === 'acknowledged') break
      if (!slim) {
        const wasRetry = decision.kind === 'retry'
        decision = toDeadLetter({ main: opened.main, attempt: opened.attempt, topology }, 'too-large')
        if (wasRetry && !(await untilMayGo(lane, { decision }))) return
        continue
      }
      emitter.emit('problem', {
        where: `${lane.topic}/${lane.partition}@${entry.offset}`,
        error: `too large even for '${decision.topic}': raise its max.message.bytes; the partition waits`,
      })
      if (!(await stuck(lane, STUCK_RETRY_MS))) return
    }
    if (lane.closed) {
      emitter.emit('late', { ...placeOf({ lane, entry }), outcome: 'failed' })
      return
    }
    report(lane, entry, decision, because, errorText(judged.error))
    options.settled(lane, entry)
  }

  /** Asked again until the cluster tells; undefined where the record is left to the next owner meanwhile. */
  async function partitionsOf(lane: Lane, topic: string, missing?: 'missing-is-an-error'): Promise<number | undefined> {
    for (;;) {
      try {
        return await countPartitions(topic)
      } catch (error) {
        if (missing !== undefined && isRetrylineError(error) && error.code === 'RETRYLINE_PUBLISH') throw error
        const where = `looking up '${topic}' for a copy; ${lane.topic}/${lane.partition} waits`
        emitter.emit('problem', { where, error: errorText(error) })
      }
      if (!(await stuck(lane, LOOK_AGAIN_MS))) return undefined
    }
  }

  function report(lane: Lane, entry: Entry, decision: Decision, because: string, error: string): void {
    const { attempt, topic: to } = decision
    const fields = { ...placeOf({ lane, entry }), to, attempt, because, error }
    if (decision.kind === 'retry') emitter.emit('retried', { ...fields, dueAt: decision.dueAt })
    else emitter.emit('deadLettered', { ...fields, reason: decision.reason })
  }

  /** Waits before the next try; false where the lane or the outbox is closed meanwhile. */
  async function stuck(lane: Lane, ms: number): Promise<boolean> {
    lane.troubled++
    options.laneChanged(lane)
    const open = await outbox.wait(ms)
    lane.troubled--
    options.laneChanged(lane)
    return open && !lane.closed && !options.stopping()
  }

  function troubleOf(lane: Lane): (troubled: boolean) => void {
    return (troubled) => {
      lane.troubled += troubled ? 1 : -1
      options.laneChanged(lane)
    }
  }

  function settleIfOpen(lane: Lane, entry: Entry): void {
    if (lane.closed) emitter.emit('late', { ...placeOf({ lane, entry }), outcome: 'ok' })
    else options.settled(lane, entry)
  }

  function latenessOf(entry: Entry): number | undefined {
    const dueAt = entry.opened?.dueAt
    return dueAt === undefined ? undefined : Math.max(0, clock.now() - dueAt)
  }

  const calls = settings.batch ? createTogether(settings.batch.handler) : createOneByOne(settings.handler!)
  return { ...calls, crashLoop, postpone }
}
