import { AsyncResource } from 'node:async_hooks'
import { RetrylineError } from '../errors'
import { systemClock, type Clock, type Timer } from '../ports'
import { checkRealTime, realTime } from './clock/real-time'
import { toMs, type Duration } from './duration'
import { TimerQueue, type Entry, type Purpose } from './timer-queue'
import { WorkOffice, type FakeWork } from './work'

/*
 * The manual clock: how `advance` moves.
 *
 * waiting for quiet -> quiet   -> the next timer at or before the target fires -> waiting for quiet ... -> at the target
 *                   -> stalled -> all that is due at this very moment fires, once; else a deadline of what is stuck
 *                                 fires -> waiting for quiet
 *                              -> there is none before the target: rejected, and time stays where it is
 *
 * Quiet: nothing counted is busy and one macrotask has passed in which nothing happened to counted work.
 * Stalled: something is busy and nothing has happened to counted work for `stallAfter` real ms.
 *
 * Must never happen: time that goes back; a timer fired early, or twice; a wait without an end. All that is real here
 * (macrotasks, the stall's time) is captured at load: a test framework's fake timers cannot stop it.
 */

export interface ManualClock extends Clock {
  /** Moves time: runs what is due on the way, each at its time, and waits until broker and handlers are quiet. */
  advance(duration: Duration): Promise<void>
  /** Waits until broker and handlers are quiet; fires what is due now, and moves no time. */
  settle(): Promise<void>
  /** For handlers: resolves when the clock has moved so far. The handler is parked meanwhile, not busy. */
  sleep(duration: Duration): Promise<void>
  /** For handlers that wait for something the test itself will do: parked, not busy, until `promise` settles. */
  park<T>(promise: PromiseLike<T>): Promise<T>
  /** Moves the wall clock alone (forwards or back), as an operator or a time server does. */
  jump(ms: number): void
  track(label: () => string): FakeWork
  /** Names of what is busy now; empty when all is quiet. */
  busy(): string[]
  /** How many timers are waiting. */
  timers(): number
}

/** What only the fake itself uses. */
export interface InnerClock extends ManualClock {
  /** Resolves in a macrotask of its own. */
  turn(): Promise<void>
  /** A virtual wait of the fake's own code; a handler that waits for it is parked. */
  wait(ms: number): Promise<void>
  detached<T>(fn: () => T): T
  /** Ends the running or the next `advance` with this reason: something goes round without moving. */
  giveUp(reason: string): void
  /**
   * Goes from timer to timer until `enough` says so (it is asked whenever all is quiet), no timer is left, or the next
   * one stands more than `limit` ms ahead. Rejects as `advance` does; time stays at the last timer that fired.
   */
  runUntil(enough: () => boolean, limit: number): Promise<'enough' | 'no timer' | 'limit'>
  /** Names of handler calls that wait, parked. */
  parked(): string[]
}

export interface ClockOptions {
  /** Where time starts: the real now unless told. */
  startAt?: Date | number
  /** Real ms without any progress after which counted work is taken to be stuck. */
  stallAfter?: number
}

/**
 * Work that never rests, though it keeps happening, is given up after so many times `stallAfter`. On a machine twenty times
 * overloaded the demo, whose handlers make real requests, was at one moment for more than ten times that.
 */
const PATIENCE = 30
/** A stall is so many looks in a row without progress: a process that gets no processor looks seldom. */
const LOOKS = 10

/** `fn`, run in the course in which it is given. (As AsyncResource.bind does, which on Node 20 costs thirty times as much.) */
function here(fn: () => void): () => void {
  const resource = new AsyncResource('retryline.clock')
  return () => resource.runInAsyncScope(fn)
}

const fault = (message: string): RetrylineError => new RetrylineError('RETRYLINE_TESTING', message)

export function createManualClock(options: ClockOptions = {}): InnerClock {
  checkRealTime()
  const { stallAfter = 2000 } = options
  const startAt = Math.floor(Number(options.startAt ?? systemClock.now()))
  if (!Number.isFinite(startAt)) throw fault(`startAt: ${String(options.startAt)} is not a time`)
  if (!(stallAfter > 0)) throw fault(`stallAfter: ${String(stallAfter)} is not a number of real ms above 0`)

  let mono = 0
  let offset = startAt
  const timers = new TimerQueue(offset)
  const office = new WorkOffice()
  let queue: Promise<void> = Promise.resolve()
  let hopeless: string | undefined

  const set = (at: number, wall: boolean, purpose: Purpose, fn: () => void): Timer =>
    timers.add({ at, wall, purpose, owner: office.current(), fire: here(fn) })

  const turn = (): Promise<void> => new Promise((resolve) => void realTime.soon(resolve))

  /** Resolves when nothing is busy, or after `ms` real ms. */
  const idleWithin = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const settle = (): void => {
        office.onIdle(undefined)
        timer.cancel()
        resolve()
      }
      const timer = realTime.after(ms, settle)
      office.onIdle(settle)
    })

  async function untilQuiet(): Promise<'quiet' | 'stalled'> {
    const began = realTime.now()
    let seen = office.activity
    let looks = 0
    for (;;) {
      if (hopeless !== undefined) {
        const reason = hopeless
        hopeless = undefined
        throw fault(reason)
      }
      if (office.busyCount === 0) await turn()
      else await idleWithin(stallAfter / LOOKS)
      if (office.activity === seen && office.busyCount === 0) return 'quiet'
      looks = office.activity === seen ? looks + 1 : 0
      if (looks >= LOOKS) return 'stalled'
      seen = office.activity
      if (realTime.now() - began >= PATIENCE * stallAfter) return 'stalled'
    }
  }

  const stuck = (target: number): RetrylineError => {
    const labels = office.labels()
    const what = labels.length > 0 ? labels.join(', ') : 'work that starts again and again and never rests'
    return fault(
      `time cannot move to +${target - mono} ms: without progress for ${stallAfter} real ms: ${what}. ` +
        'A handler that waits for the virtual clock should use kafka.clock.sleep(), one that waits for the test ' +
        'kafka.clock.park(); if it does long real work, raise stallAfter.',
    )
  }

  /** Deadlines of what is stuck: not those that belong to work which waits, parked, in good health. */
  const ofTheStalled = (entry: Entry): boolean => entry.purpose === 'deadline' && !office.isParked(entry.owner)

  const fire = (entry: Entry): void => {
    // A plain timer that a stall has held back fires late: time never goes back.
    mono = Math.max(mono, timers.due(entry))
    office.activity++
    entry.fire()
  }

  /** Timers of this moment move no time, so a stuck call need not hold them: five due partitions have five timers. */
  const fireDue = (): boolean => {
    let fired = false
    for (let left = timers.size; left > 0; left--) {
      const entry = timers.take(mono)
      if (entry === undefined) break
      fire(entry)
      fired = true
    }
    return fired
  }

  /** With `enough`, stops where that says so, and moves no further than to the last timer. */
  async function move(span: number, enough?: () => boolean): Promise<'enough' | 'no timer' | 'limit'> {
    const target = mono + span
    let clearedAt: number | undefined
    for (;;) {
      const state = await untilQuiet()
      if (state === 'quiet' && enough?.()) return 'enough'
      if (state === 'stalled' && clearedAt !== mono) {
        // Once for each moment: a timer that sets itself again for now must not keep a stuck call from being told.
        clearedAt = mono
        if (fireDue()) continue
      }
      const entry = timers.take(target, state === 'stalled' ? ofTheStalled : undefined)
      if (entry === undefined) {
        if (state === 'stalled') throw stuck(target)
        if (enough === undefined) mono = Math.max(mono, target)
        return timers.size === 0 ? 'no timer' : 'limit'
      }
      fire(entry)
    }
  }

  /** One at a time, in the order in which they were asked for. */
  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const inside = office.current()
    if (inside !== undefined) {
      throw fault(`the clock cannot be moved from inside a handler (${inside.label()}): it waits for that handler`)
    }
    const mine = queue.then(work)
    queue = mine.then(
      () => undefined,
      () => undefined,
    )
    return mine
  }

  async function advance(duration: Duration): Promise<void> {
    const span = toMs(duration)
    await inTurn(() => move(span))
  }

  const wait = (ms: number): Promise<void> => {
    const unpark = office.current()?.park()
    return new Promise((resolve) => {
      set(mono + Math.ceil(ms), false, 'wait', () => {
        unpark?.()
        resolve()
      })
    })
  }

  return {
    now: () => mono + offset,
    monotonic: () => mono,
    after: (ms, fn, purpose = 'wait') => set(mono + Math.max(0, Math.ceil(ms) || 0), false, purpose, fn),
    at: (time, fn) => set(Math.ceil(time) || 0, true, 'wait', fn),
    soon(fn) {
      const work = office.track(() => 'a callback of clock.soon')
      const timer = realTime.soon(
        here(() => {
          try {
            fn()
          } finally {
            work.done()
          }
        }),
      )
      return {
        cancel() {
          timer.cancel()
          work.done()
        },
      }
    },
    track: (label) => office.track(label),
    advance,
    settle: () => advance(0),
    sleep: async (duration) => wait(toMs(duration)),
    async park(promise) {
      const unpark = office.current()?.park()
      try {
        return await promise
      } finally {
        unpark?.()
      }
    },
    jump(ms) {
      if (!Number.isFinite(ms))
        throw fault(`clock.jump(): ${String(ms)} is not a number of ms; give one, below 0 to go back`)
      offset += Math.trunc(ms)
      timers.shift(offset)
    },
    busy: () => office.labels(),
    timers: () => timers.size,
    turn,
    wait,
    detached: (fn) => office.detached(fn),
    giveUp(reason) {
      hopeless = reason
    },
    runUntil: (enough, limit) => inTurn(() => move(limit, enough)),
    parked: () => office.parked(),
  }
}
