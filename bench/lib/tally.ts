import type { Counts } from './suite'

/** Counts what a system handled, each record known by a number of its own, so that nothing is lost or doubled unseen. */
export class Tally {
  readonly #seen: Uint8Array
  readonly #all: Promise<void>
  #finish = (): void => undefined
  #different = 0
  #calls = 0
  #early = 0

  constructor(readonly expected: number) {
    this.#seen = new Uint8Array(expected)
    this.#all = new Promise((resolve) => (this.#finish = resolve))
  }

  get calls(): number {
    return this.#calls
  }

  saw(index: number, early = false): void {
    this.#calls++
    if (early) this.#early++
    if (this.#seen[index] === 1) return
    this.#seen[index] = 1
    if (++this.#different === this.expected) this.#finish()
  }

  /** Resolves when every record was seen, or when `ms` have passed: what is lost then shows in the counts. */
  async complete(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
    await Promise.race([this.#all, patience])
    clearTimeout(timer)
  }

  counts(problems: string[] = []): Counts {
    const lost = this.expected - this.#different
    return { expected: this.expected, lost, duplicated: this.#calls - this.#different, early: this.#early, problems }
  }
}
