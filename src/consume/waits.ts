/** Waits that a stop cuts short. */
import type { Clock } from '../ports'

export class Waits {
  readonly #ends = new Set<() => void>()

  constructor(readonly clock: Clock) {}

  /** Resolves after so long, ms, or when all are cut short. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel()
        this.#ends.delete(end)
        resolve()
      }
      const timer = this.clock.after(ms, end)
      this.#ends.add(end)
    })
  }

  cutShort(): void {
    for (const end of this.#ends) end()
  }
}
