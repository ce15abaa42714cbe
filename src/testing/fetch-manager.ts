/**
 * One fetcher for each node, and the workers that all of them share: kafkajs's FetchManager, Fetcher and WorkerQueue.
 *
 * A fetcher is: fetch from its node -> all batches of the answer are worked on -> fetch again ... -> stopped, or failed.
 * The first that fails stops all others, which end what they are at. When nodes come or go the fetchers are made anew.
 *
 * Must never happen: two fetches from one node at once; a fetch from a node while batches of its last one are at work;
 * a partition at work from two nodes (its leader has moved: the later batch is left out); fetchers that are made anew after a
 * stop, as kafkajs does: they fetch nothing without end, and the process stands still.
 */
import { KafkaJSNoBrokerAvailableError } from './errors'

export interface Fetched {
  readonly topic: string
  readonly partition: number
}

export interface FetchManagerSettings<T extends Fetched> {
  /** How many batches are worked on at once, whatever nodes they come from. */
  readonly concurrency: number
  nodeIds(): number[]
  fetch(node: number): Promise<T[]>
  handle(batch: T): Promise<void>
  /** Fetchers are to end: polls that stand should end as well. */
  hurry(): void
}

/** Other nodes than those that are fetched from: not an error to whoever is outside. */
class OtherNodes extends Error {}

interface Queued<T> {
  readonly batch: T
  resolve(): void
  reject(error: Error): void
}

export class FetchManager<T extends Fetched> {
  private fetchers: Fetcher<T>[] = []
  private readonly queue: Queued<T>[] = []
  private readonly busy: boolean[]
  private stopped = false

  constructor(private readonly settings: FetchManagerSettings<T>) {
    this.busy = Array.from({ length: settings.concurrency }, () => false)
  }

  /** Until it is stopped, or until a fetch or a batch fails. */
  async start(): Promise<void> {
    this.stopped = false
    for (;;) {
      this.fetchers = this.createFetchers()
      try {
        await Promise.all(this.fetchers.map((fetcher) => fetcher.start()))
        return
      } catch (e) {
        await this.end()
        if (!(e instanceof OtherNodes)) throw e
        if (this.stopped) return
      }
    }
  }

  stop(): Promise<void> {
    this.stopped = true
    return this.end()
  }

  private async end(): Promise<void> {
    const ending = this.fetchers.map((fetcher) => fetcher.stop())
    if (this.fetchers.some(({ active }) => active)) this.settings.hurry()
    await Promise.all(ending)
  }

  private createFetchers(): Fetcher<T>[] {
    const { nodeIds, fetch } = this.settings
    const ids = nodeIds()
    if (ids.length === 0) throw new KafkaJSNoBrokerAvailableError()
    const atWork = new Map<string, number>()
    const look = async (node: number): Promise<T[]> => {
      const now = nodeIds()
      const same = ids.length === now.length && ids.every((id) => now.includes(id))
      if (!same && now.length > 0) throw new OtherNodes()
      return fetch(node)
    }
    return ids.map((id) => new Fetcher(id, look, (batches) => this.work(batches), atWork))
  }

  /** Resolves when all of them have been worked on; fails with the first that failed. */
  private async work(batches: readonly T[]): Promise<void> {
    const promises = batches.map(
      (batch) => new Promise<void>((resolve, reject) => void this.queue.push({ batch, resolve, reject })),
    )
    this.busy.forEach((busy, i) => {
      if (!busy) void this.runWorker(i)
    })
    const results = await Promise.allSettled(promises)
    for (const result of results) if (result.status === 'rejected') throw result.reason as Error
  }

  private async runWorker(i: number): Promise<void> {
    this.busy[i] = true
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) {
      try {
        await this.settings.handle(next.batch)
        next.resolve()
      } catch (e) {
        next.reject(e as Error)
      }
    }
    this.busy[i] = false
  }
}

class Fetcher<T extends Fetched> {
  /** Its loop has not ended yet. */
  active = false
  private running = false
  private whenEnded: (() => void)[] = []

  constructor(
    private readonly node: number,
    private readonly fetch: (node: number) => Promise<T[]>,
    private readonly work: (batches: readonly T[]) => Promise<void>,
    private readonly atWork: Map<string, number>,
  ) {}

  async start(): Promise<void> {
    this.running = true
    this.active = true
    try {
      while (this.isRunning()) {
        const batches = await this.fetch(this.node)
        if (this.isRunning()) await this.handOver(batches)
      }
    } finally {
      this.running = false
      this.active = false
      for (const resolve of this.whenEnded.splice(0)) resolve()
    }
  }

  async stop(): Promise<void> {
    if (!this.running) return
    this.running = false
    await new Promise<void>((resolve) => void this.whenEnded.push(resolve))
  }

  private isRunning(): boolean {
    return this.running
  }

  private async handOver(batches: readonly T[]): Promise<void> {
    const mine = batches.filter((batch) => (this.atWork.get(keyOf(batch)) ?? this.node) === this.node)
    if (mine.length === 0) return
    for (const batch of mine) this.atWork.set(keyOf(batch), this.node)
    try {
      await this.work(mine)
    } finally {
      for (const batch of mine) this.atWork.delete(keyOf(batch))
    }
  }
}

const keyOf = ({ topic, partition }: Fetched): string => `${topic}|${partition}`
