/**
 * Lets one record run with nothing else at work in the whole process: where a process dies then, it is known under what.
 *
 * States:  open -> closing (somebody asks: nothing starts any more) -> taken (nothing is at work) -> open
 *   - several that ask take turns.
 *   - who has asked for PATIENCE_MS and still is not alone (a handler that does not end) is let go on beside the others, and
 *     told so: then a death proves nothing. Who still has its turn by then is told that others wait.
 *
 * Must never happen: two at once; a gate that stays closed; a start that is not asked for again once it is open.
 *
 * It hangs on the process (globalThis) under a registered symbol, since a death is the death of all consumers in it, and
 * the ESM and the CJS build must see each other's.
 */
import type { Clock, Timer } from '../ports'

/** ms. */
export const PATIENCE_MS = 60_000

/** One group of a consumer. */
export interface Part {
  /** Handlers at work. */
  atWork(): number
  /** The gate is open again. */
  goOn(): void
}

export interface Turn {
  /** Gives the turn back, or up; more than once is fine. */
  end(): void
}

export interface Asker {
  /** The turn is there, or it is not to be had. */
  granted(alone: boolean): void
  /** The turn has been had for long: it is to be given back as soon as can be. */
  late(): void
}

interface Asking extends Turn {
  timer: Timer | undefined
  readonly asker: Asker
}

const KEY: unique symbol = Symbol.for('retryline.alone') as never

export class Alone {
  readonly #parts = new Set<Part>()
  readonly #asking = new Set<Asking>()
  #taken: Asking | undefined
  /** Whether nothing else may start. */
  closed = false

  /** Whether somebody is alone now. */
  get taken(): boolean {
    return this.#taken !== undefined
  }

  /** That of this process; of the one that `process` stands for where a fake broker plays several. */
  static of(process: object = globalThis): Alone {
    return ((process as { [KEY]?: Alone })[KEY] ??= new Alone())
  }

  /** Returns the function that leaves. */
  join(part: Part): () => void {
    this.#parts.add(part)
    return () => {
      this.#parts.delete(part)
      this.look()
    }
  }

  /** `granted` may be called from inside. */
  ask(clock: Clock, asker: Asker): Turn {
    const arm = (): Timer => clock.after(PATIENCE_MS, () => this.#overdue(asking, arm))
    const asking: Asking = { timer: undefined, asker, end: () => this.#end(asking) }
    asking.timer = arm()
    this.#asking.add(asking)
    this.closed = true
    this.look()
    return asking
  }

  /** Something at work has ended. */
  look(): void {
    if (!this.closed || this.#taken !== undefined) return
    const [next] = this.#asking
    if (next === undefined) {
      this.closed = false
      for (const part of [...this.#parts]) part.goOn()
      return
    }
    for (const part of this.#parts) if (part.atWork() > 0) return
    this.#asking.delete(next)
    this.#taken = next
    next.asker.granted(true)
  }

  #overdue(asking: Asking, arm: () => Timer): void {
    asking.timer = undefined
    if (this.#taken === asking) asking.asker.late()
    // Beside one who is alone nothing runs, however long it has waited.
    else if (this.#taken !== undefined) asking.timer = arm()
    else if (this.#asking.delete(asking)) {
      this.look()
      asking.asker.granted(false)
    }
  }

  #end(asking: Asking): void {
    asking.timer?.cancel()
    asking.timer = undefined
    const had = this.#asking.delete(asking)
    if (this.#taken === asking) this.#taken = undefined
    else if (!had) return
    this.look()
  }
}
