/** A first-in first-out queue whose `shift` does not move what stands behind it. */
export class Deque<T> {
  #items: (T | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  get first(): T | undefined {
    return this.#items[this.#head]
  }

  get last(): T | undefined {
    return this.#head < this.#items.length ? this.#items[this.#items.length - 1] : undefined
  }

  /** Puts another in the place of the one that stands `at` so many behind the first. */
  set(at: number, item: T): void {
    this.#items[this.#head + at] = item
  }

  push(item: T): void {
    this.#items.push(item)
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined
    const item = this.#items[this.#head]
    this.#items[this.#head++] = undefined
    // Cutting off the used half only when it is the larger one keeps the cost for each record constant.
    if (this.#head === this.#items.length) this.clear()
    else if (this.#head >= 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  clear(): void {
    this.#items = []
    this.#head = 0
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (let i = this.#head; i < this.#items.length; i++) yield this.#items[i] as T
  }
}
