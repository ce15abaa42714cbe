import type { Clock } from '../ports'

/** What may still be said in this window: the thing itself, once that more of it follows, or nothing. */
export type Allowance = 'say' | 'say-more-follow' | 'quiet'

/** Lets `burst` things of one kind through in each window of `windowMs`; no timer, so nothing keeps a process alive. */
export function createRateLimit(clock: Clock, burst: number, windowMs: number): (kind: string) => Allowance {
  const windows = new Map<string, { since: number; count: number }>()
  return (kind) => {
    const now = clock.monotonic()
    let window = windows.get(kind)
    if (!window || now - window.since >= windowMs) {
      window = { since: now, count: 0 }
      windows.set(kind, window)
    }
    window.count++
    if (window.count <= burst) return 'say'
    return window.count === burst + 1 ? 'say-more-follow' : 'quiet'
  }
}
