/**
 * Stops everything where too much of it becomes dead letters: after a bad deploy every record would.
 *
 * States:  open -> halted -> open (by a person: resume(), or a start)
 *   - a dead letter counts against the records that came to their end within `withinMs`: more than `burst` of them, and more
 *     than the `share` of all, halts.
 *   - halted: the record that would have been one too many stays where it is, and nothing starts any more.
 *
 * Must never happen: a record dead-lettered beyond the limit; a halt that ends by itself.
 */
import type { Emitter } from '../observe'
import type { Clock } from '../ports'

export interface LimitSettings {
  /** Of all that came to their end, 0 to 1. */
  readonly share: number
  /** Fewer dead letters than this never halt. */
  readonly burst: number
  readonly withinMs: number
}

/** The window moves on by so many steps. */
const STEPS = 10

export class DeadLetterLimit {
  halted = false
  #buckets: { step: number; settled: number; dead: number }[] = []

  constructor(
    private readonly clock: Clock,
    private readonly emitter: Emitter,
    private readonly settings: LimitSettings,
  ) {}

  /** A record was done with in any other way. */
  settled(): void {
    this.#now().settled++
  }

  /** Whether one more record may become a dead letter; counts it. */
  allows(): boolean {
    if (this.halted) return false
    this.#now()
    const sum = (what: 'settled' | 'dead'): number => this.#buckets.reduce((all, bucket) => all + bucket[what], 0)
    const dead = sum('dead') + 1
    const all = sum('settled') + dead
    if (dead <= this.settings.burst || dead / all <= this.settings.share) {
      this.#now().dead++
      return true
    }
    this.halted = true
    this.emitter.emit('halted', { deadLetters: dead - 1, of: all - 1, withinMs: this.settings.withinMs })
    return false
  }

  /** A person says that it may go on; what was counted is forgotten. */
  reset(): void {
    this.halted = false
    this.#buckets = []
  }

  #now(): { settled: number; dead: number } {
    const step = Math.floor(this.clock.monotonic() / (this.settings.withinMs / STEPS))
    const last = this.#buckets[this.#buckets.length - 1]
    if (last?.step === step) return last
    const bucket = { step, settled: 0, dead: 0 }
    this.#buckets.push(bucket)
    this.#buckets = this.#buckets.filter((one) => one.step > step - STEPS)
    return bucket
  }
}
