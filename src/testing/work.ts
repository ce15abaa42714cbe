import { AsyncLocalStorage } from 'node:async_hooks'
import type { Work } from '../ports'

/*
 * What is counted as busy.
 *
 * States of a piece of work: busy -> parked -> busy ... -> done. `track` makes it busy; `park` while it waits for the
 * virtual clock or for a held request; `done` ends it, from either state and for good. Whoever parks also parks the
 * work in whose course it was begun: a handler that waits for its own publish is waiting for what holds the publish.
 *
 * Must never happen: a piece counted twice or below zero (both make the clock run early or never); a parked piece that
 * ends and is counted as busy again.
 */

export interface FakeWork extends Work {
  /** Not busy until the returned function is called. */
  park(): () => void
}

/**
 * Whose course this is, for all clocks of the process: Node 20 asks every storage that was ever used at every promise, so
 * one for each fake broker would make each test slower than the one before it.
 */
const course = new AsyncLocalStorage<Piece | undefined>()

class Piece implements FakeWork {
  ended = false
  parked = 0
  /** Has a body of its own: a handler call, and not only a request that is waited for. */
  isCall = false

  constructor(
    readonly office: WorkOffice,
    readonly label: () => string,
    readonly parent: Piece | undefined,
  ) {}

  /** The course that it was begun in, which may be another clock's. */
  readonly around = course.getStore()

  get busy(): boolean {
    return !this.ended && this.parked === 0
  }

  run<T>(fn: () => T): T {
    this.isCall = true
    return this.office.within(this, fn)
  }

  done(): void {
    if (this.ended) return
    const wasBusy = this.busy
    this.ended = true
    this.office.ended(this, wasBusy)
  }

  park(): () => void {
    const line: Piece[] = []
    if (!this.ended) line.push(this)
    for (let piece = this.parent; piece; piece = piece.parent) if (!piece.ended) line.push(piece)
    for (const piece of line) this.office.changed(piece, 1)
    let parked = true
    return () => {
      if (!parked) return
      parked = false
      for (const piece of line) this.office.changed(piece, -1)
    }
  }
}

export class WorkOffice {
  /** Rises with everything that happens to counted work: two equal readings mean that nothing did. */
  activity = 0
  private readonly open = new Set<Piece>()
  private busy = 0
  private whenIdle: (() => void) | undefined

  get busyCount(): number {
    return this.busy
  }

  track(label: () => string): FakeWork {
    const piece = new Piece(this, label, this.current())
    this.open.add(piece)
    this.busy++
    this.activity++
    return piece
  }

  /** The unfinished work in whose course the caller runs. */
  current(): Piece | undefined {
    let piece = course.getStore()
    while (piece !== undefined && piece.office !== this) piece = piece.around
    return piece?.ended ? undefined : piece
  }

  /** Names of all that is busy now. */
  labels(): string[] {
    const labels: string[] = []
    for (const piece of this.open) if (piece.busy) labels.push(piece.label())
    return labels
  }

  /** Names of the calls that wait for the virtual clock, a held request or the test. */
  parked(): string[] {
    const labels: string[] = []
    for (const piece of this.open) if (piece.isCall && piece.parked > 0) labels.push(piece.label())
    return labels
  }

  isParked(owner: unknown): boolean {
    return owner instanceof Piece && !owner.ended && owner.parked > 0
  }

  within<T>(piece: Piece | undefined, fn: () => T): T {
    return course.run(piece, fn)
  }

  /** Runs `fn` in nobody's course: a consumer's loop is not part of the handler that happened to start it. */
  detached<T>(fn: () => T): T {
    return course.run(undefined, fn)
  }

  /** Calls back once, when nothing is busy. */
  onIdle(fn: (() => void) | undefined): void {
    this.whenIdle = fn
  }

  ended(piece: Piece, wasBusy: boolean): void {
    this.open.delete(piece)
    this.activity++
    if (wasBusy) this.lessBusy()
  }

  changed(piece: Piece, by: 1 | -1): void {
    this.activity++
    const wasBusy = piece.busy
    piece.parked += by
    if (wasBusy && !piece.busy) this.lessBusy()
    else if (!wasBusy && piece.busy) this.busy++
  }

  private lessBusy(): void {
    this.busy--
    if (this.busy === 0) this.whenIdle?.()
  }
}
