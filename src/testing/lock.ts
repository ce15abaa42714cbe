import type { InnerClock } from './clock'
import { KafkaJSLockTimeout } from './errors'

/** kafkajs's mutex, first come first served, on the virtual clock. Whoever waits too long is refused. */
export class Lock {
  private locked = false
  private readonly waiting = new Set<() => void>()

  constructor(
    private readonly clock: InnerClock,
    /** Virtual ms. */
    private readonly timeout: number,
  ) {}

  async acquire(): Promise<void> {
    if (!this.locked) {
      this.locked = true
      return
    }
    const turn = new Promise<void>((resolve, reject) => {
      const enter = (): void => {
        timer.cancel()
        this.locked = true
        resolve()
      }
      const timer = this.clock.detached(() =>
        this.clock.after(this.timeout, () => {
          const waiting = this.waiting.size
          this.waiting.delete(enter)
          reject(new KafkaJSLockTimeout(`Timeout while acquiring lock (${waiting} waiting locks)`))
        }),
      )
      this.waiting.add(enter)
    })
    // Who holds it may be held up by the test: a handler that waits here is parked.
    return this.clock.park(turn)
  }

  release(): void {
    this.locked = false
    const [next] = this.waiting
    if (next === undefined) return
    this.waiting.delete(next)
    next()
  }
}
