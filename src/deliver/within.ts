import type { Clock } from '../ports'

/** The work's result; rejects with `failure` where it does not come in time, or where `closed` comes first. ms. */
export async function within<T>(
  clock: Clock,
  ms: number,
  closed: Signal,
  work: Promise<T>,
  failure: (why: 'late' | 'closed') => Error,
): Promise<T> {
  let cancel = (): void => undefined
  let off = (): void => undefined
  const late = new Promise<never>((_, reject) => {
    const timer = clock.after(ms, () => reject(failure('late')), 'deadline')
    cancel = () => timer.cancel()
    off = closed.on(() => reject(failure('closed')))
  })
  try {
    return await Promise.race([work, late])
  } finally {
    cancel()
    off()
  }
}

export interface Signal {
  /** Calls `fn` once it is given, soon where it has been; returns what takes that back: what waits beside it must not pile up. */
  on(fn: () => void): () => void
  give(): void
}

export function signal(): Signal {
  const waiting = new Set<() => void>()
  let given = false
  return {
    on(fn) {
      if (given) queueMicrotask(fn)
      else waiting.add(fn)
      return () => waiting.delete(fn)
    },
    give() {
      given = true
      for (const fn of waiting) fn()
      waiting.clear()
    },
  }
}
