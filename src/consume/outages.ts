/**
 * Dependencies that are down, and the lanes that wait for them.
 *
 * A dependency:  failing -> down -> (probe, probe, ...) -> up, and forgotten
 *   - `failing`: handlers have said that it is down, fewer times than `failures` within `withinMs`. Their records are
 *     retried by the schedule. One that would become a dead letter makes it `down` at once: nothing is dead-lettered for a
 *     dependency.
 *   - `down`: a record whose handler says so is set aside, uncommitted, and its lane starts nothing more. Lanes whose
 *     handlers do not say so go on.
 *   - one record at a time probes: one of those set aside, each time of another lane, after `probeMs`, then later and later
 *     up to `maxProbeMs`. Where every handler place is taken it gets the next one that is free. Ends its handler in any
 *     other way than with the same complaint, then the dependency is up: what was set aside goes back to its place, and the
 *     lanes go on.
 *
 * Must never happen: a record that is set aside committed or copied; two probes of one dependency at once; a lane that is
 * held while nobody probes; a record that is not one of those set aside taken for the probe (it may not need the
 * dependency at all).
 */
import type { Emitter } from '../observe'
import type { Clock, Timer } from '../ports'
import type { Entry, Lane } from './lane'

export interface OutageLimits {
  readonly failures: number
  readonly withinMs: number
  readonly probeMs: number
  readonly maxProbeMs: number
}

/** The group that a lane is of. */
export interface LaneHost {
  /** Sets the record aside: its handler's place is free, its key is not. */
  setAside(lane: Lane, entry: Entry): void
  /**
   * The first record that was set aside, if anything may start at all. Where only a handler's place is missing, `retry` is
   * called when one is free.
   */
  firstAside(lane: Lane, retry: () => void): Entry | undefined
  /** Handles that record; it may have ended when this returns. */
  probe(lane: Lane, entry: Entry): void
  /** Puts what was set aside back to its place, and goes on. */
  goOn(lane: Lane): void
}

export interface Outage {
  readonly dependency: string
  /** The reason that the first record gave. */
  readonly because: string
  /** How long it has been down, ms. */
  readonly downMs: number
  /** Partitions of main and retry topics that wait for it. */
  readonly lanes: number
  readonly probes: number
}

interface Down {
  readonly dependency: string
  readonly because: string
  readonly since: number
  readonly lanes: Map<Lane, LaneHost>
  probe: { readonly lane: Lane; readonly entry: Entry } | undefined
  /** It is time for a probe, and none has started. */
  due: boolean
  readonly retry: () => void
  probes: number
  waitMs: number
  timer: Timer | undefined
}

export class Outages {
  readonly #failures = new Map<string, number[]>()
  readonly #down = new Map<string, Down>()

  constructor(
    private readonly clock: Clock,
    private readonly emitter: Emitter,
    private readonly limits: OutageLimits,
  ) {}

  /** For health. */
  list(): Outage[] {
    const now = this.clock.monotonic()
    return [...this.#down.values()].map(({ dependency, because, since, lanes, probes }) => ({
      dependency,
      because,
      downMs: Math.round(now - since),
      lanes: [...lanes.keys()].filter(({ closed }) => !closed).length,
      probes,
    }))
  }

  /**
   * A handler has said that a dependency is down. True where the record is set aside; else it is to be retried. `isEcho`:
   * another record of the same call has been counted for it.
   */
  holds(
    host: LaneHost,
    lane: Lane,
    entry: Entry,
    what: { dependency: string; because: string },
    last: boolean,
    isEcho = false,
  ): boolean {
    const { dependency } = what
    const own = this.#down.get(lane.heldBy ?? '')
    if (own !== undefined && own.dependency !== dependency) {
      if (own.probe?.entry !== entry) {
        // A lane that waits for one dependency does not wait for another as well: it will say so when it goes on.
        host.setAside(lane, entry)
        return true
      }
      // The probe has got past the one dependency and come to the next.
      this.#up(own)
    }
    let down = this.#down.get(dependency)
    if (down === undefined) {
      const isOver = !isEcho && this.#isOver(dependency)
      if (!isOver && !last) return false
      down = this.#open(what)
    }
    if (down.probe?.entry === entry) this.#failedProbe(down)
    lane.heldBy ??= dependency
    this.#down.get(lane.heldBy)?.lanes.set(lane, host)
    host.setAside(lane, entry)
    return true
  }

  /** A handler of a held lane has ended in another way. True where nothing was decided, and the record was set aside again. */
  ended(lane: Lane, entry: Entry, undecided: boolean): boolean {
    const down = this.#down.get(lane.heldBy ?? '')
    if (down === undefined) return false
    const isProbe = down.probe?.entry === entry
    if (undecided) {
      if (isProbe) down.probe = undefined
      down.lanes.get(lane)?.setAside(lane, entry)
      return true
    }
    if (isProbe) this.#up(down)
    return false
  }

  close(): void {
    for (const { timer } of this.#down.values()) timer?.cancel()
    this.#down.clear()
  }

  #isOver(dependency: string): boolean {
    const now = this.clock.monotonic()
    const times = (this.#failures.get(dependency) ?? []).filter((at) => now - at < this.limits.withinMs)
    times.push(now)
    // Behind the others: in front stand those that failed longest ago, and whose names may never come again.
    this.#failures.delete(dependency)
    this.#failures.set(dependency, times)
    for (const [name, at] of this.#failures) {
      if (now - at[at.length - 1]! < this.limits.withinMs) break
      this.#failures.delete(name)
    }
    return times.length >= this.limits.failures
  }

  #open({ dependency, because }: { dependency: string; because: string }): Down {
    const failures = this.#failures.get(dependency)?.length ?? 1
    this.#failures.delete(dependency)
    const down: Down = {
      dependency,
      because,
      since: this.clock.monotonic(),
      lanes: new Map(),
      probe: undefined,
      due: false,
      retry: () => this.#startProbe(down),
      probes: 0,
      waitMs: this.limits.probeMs,
      timer: undefined,
    }
    this.#down.set(dependency, down)
    this.#probeLater(down)
    this.emitter.emit('held', { dependency, because, failures })
    return down
  }

  #probeLater(down: Down): void {
    down.timer?.cancel()
    down.timer = this.clock.after(down.waitMs, () => {
      down.timer = undefined
      this.#probe(down)
    })
  }

  #failedProbe(down: Down): void {
    down.probe = undefined
    down.waitMs = Math.min(down.waitMs * 2, this.limits.maxProbeMs)
    this.#probeLater(down)
  }

  #probe(down: Down): void {
    // One whose lane was closed meanwhile decides nothing any more.
    if (down.probe?.lane.closed) down.probe = undefined
    for (const lane of [...down.lanes.keys()]) if (lane.closed) down.lanes.delete(lane)
    if (down.lanes.size === 0) return this.#up(down)
    this.#probeLater(down)
    down.due = down.probe === undefined
    this.#startProbe(down)
  }

  #startProbe(down: Down): void {
    if (!down.due || this.#down.get(down.dependency) !== down) return
    for (const [lane, host] of down.lanes) {
      const entry = host.firstAside(lane, down.retry)
      if (entry === undefined) continue
      down.due = false
      down.probe = { lane, entry }
      down.probes++
      // Behind the others: the next probe is another lane's.
      down.lanes.delete(lane)
      down.lanes.set(lane, host)
      host.probe(lane, entry)
      return
    }
  }

  #up(down: Down): void {
    const { dependency, since, lanes, probes } = down
    down.timer?.cancel()
    this.#down.delete(dependency)
    const heldMs = Math.round(this.clock.monotonic() - since)
    this.emitter.emit('released', { dependency, heldMs, lanes: lanes.size, probes })
    for (const lane of lanes.keys()) lane.heldBy = undefined
    for (const [lane, host] of lanes) if (!lane.closed) host.goOn(lane)
  }
}
