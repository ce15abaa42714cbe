/**
 * The wall clock of a worker, which a fault may make jump while monotonic time goes on. `install` replaces `Date` and must
 * run before anything loads that keeps hold of it (the engine does): wall-clock.preload.ts is that.
 *
 * What is written down about a worker is judged by the true time and by the time that the worker believes in, so both stay
 * known: `trueNow()` is never skewed, and `skew()` is what the worker's own clock is ahead of it, ms.
 */
interface Wall {
  readonly trueNow: () => number
  skew: number
}

const WALL = Symbol.for('retryline.test.wall')
const holder = globalThis as { [WALL]?: Wall }

export function install(): void {
  const True = globalThis.Date
  const wall: Wall = { trueNow: () => True.now(), skew: 0 }
  holder[WALL] = wall
  class Skewed extends True {
    constructor(...args: unknown[]) {
      if (args.length === 0) super(True.now() + wall.skew)
      else super(...(args as [number]))
    }
    static override now(): number {
      return True.now() + wall.skew
    }
  }
  globalThis.Date = Skewed as DateConstructor
}

/** ms since the epoch, as every process of the machine agrees. */
export const trueNow = (): number => holder[WALL]?.trueNow() ?? Date.now()

export const skew = (): number => holder[WALL]?.skew ?? 0

/** Sets what this process's clock is ahead of the true time, ms; negative is behind. */
export function setSkew(ms: number): void {
  const wall = holder[WALL]
  if (!wall) throw new Error('the wall clock of this process is not ours: load wall-clock.preload.ts first')
  wall.skew = ms
}
