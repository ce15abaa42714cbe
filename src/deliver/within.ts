import type { Clock } from '../ports'

/** The work's result; rejects with `failure` where it does not come in time, or where `closed` comes first. ms. */
export async function within<T>(
  clock: Clock,
  ms: number,
  closed: Promise<void>,
  work: Promise<T>,
  failure: (why: 'late' | 'closed') => Error,
): Promise<T> {
  let cancel = (): void => undefined
  const late = new Promise<never>((_, reject) => {
    const timer = clock.after(ms, () => reject(failure('late')), 'deadline')
    cancel = () => timer.cancel()
    void closed.then(() => reject(failure('closed')))
  })
  try {
    return await Promise.race([work, late])
  } finally {
    cancel()
  }
}

export interface Signal {
  readonly promise: Promise<void>
  resolve(): void
}

export function signal(): Signal {
  let resolve!: () => void
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
