/** What the value of a record asks of its handler: so the load decides what fails, and every worker decides alike. */
export interface Wish {
  readonly id: string
  /** How many attempts fail before one succeeds; with `fatal`, the first failure is the last. */
  readonly fails: number
  readonly fatal: boolean
  /** How long each call takes, ms. */
  readonly ms: number
  /** Whether the handler gives a record to `ctx.send`, named after this one. */
  readonly send?: boolean
  /** The call takes its whole process down. */
  readonly exits?: boolean
  /** Makes the record large. */
  readonly padding?: string
}

export const encodeWish = (wish: Wish): string => JSON.stringify(wish)
export function decodeWish(value: Buffer | null): Wish {
  const wish = JSON.parse(String(value)) as Wish | null
  if (typeof wish?.id !== 'string' || typeof wish.fails !== 'number') throw new TypeError('no wish of the load')
  return wish
}

/** A mix by number: most succeed, some need a retry or two, a few never succeed, a few are fatal at once. */
export function wishOf(n: number, slowest: number): Wish {
  const id = `r${String(n).padStart(6, '0')}`
  const ms = (n * 7919) % (slowest + 1)
  if (n % 20 === 3) return { id, fails: 1, fatal: false, ms }
  if (n % 20 === 11) return { id, fails: 2, fatal: false, ms }
  if (n % 50 === 17) return { id, fails: 99, fatal: false, ms }
  if (n % 50 === 34) return { id, fails: 1, fatal: true, ms }
  return { id, fails: 0, fatal: false, ms }
}

/** What a record with this wish must come to: the dead letter topic, or a success. */
export const mustDie = ({ fails, fatal }: Wish, maxAttempts: number): boolean =>
  fails >= maxAttempts || (fatal && fails > 0)

/** Undefined where the value is not of the load's making. */
export function wishIn(value: Buffer | null): Wish | undefined {
  try {
    const wish = decodeWish(value) as Wish | null
    return typeof wish?.id === 'string' && typeof wish.fails === 'number' ? wish : undefined
  } catch {
    return undefined
  }
}
