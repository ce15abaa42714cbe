/**
 * The nodes that a client knows, and its connections to them: kafkajs's BrokerPool.
 *
 * Nothing is known before the first metadata; until then there is the seed, the first node of the list that answered.
 * A node is known (by metadata) -> connected -> its connection breaks -> known, or forgotten by whoever met the broken
 * connection -> known again by the next metadata. A handle is new each time a node comes to be known.
 *
 * Must never happen: a connection counted to a node that is down.
 */
import { connectionRefused, type FakeBroker } from './broker'
import { KafkaJSBrokerNotFound } from './errors'
import type { RequestKind } from './faults'
import { addressOf, FIRST, portOf } from './nodes'
import type { FetchAnswer, FetchRequest } from './poll'
import type { Retrier } from './retrier'

export interface BrokerHandle {
  readonly nodeId: number
  /** kafkajs's `broker.fetch`: asked for by its name each time, since others put their own in its place. */
  fetch(request: FetchRequest): Promise<FetchAnswer>
}

export class BrokerPool {
  /** The node that the last metadata named as controller. */
  controller: number | undefined
  private brokers = new Map<number, BrokerHandle>()
  /** How to hang up, by node. */
  private readonly connections = new Map<number, () => void>()
  /** Requests to one node do not overtake each other; fetches have a connection of their own. */
  private readonly lines = new Map<string, object>()
  private seed: number | undefined
  private seeds = 0
  private connecting: Promise<void> | undefined

  constructor(
    private readonly broker: FakeBroker,
    private readonly client: object,
    private readonly retrier: Retrier,
    private readonly fetchFrom: (node: number, request: FetchRequest) => Promise<FetchAnswer>,
  ) {}

  ids(): number[] {
    return [...this.brokers.keys()].sort((a, b) => a - b)
  }

  isConnected(): boolean {
    return this.connections.size > 0
  }

  /** To any node of the list that the client was given, tried again while there is none. */
  async connect(): Promise<void> {
    if (this.isConnected()) return
    this.connecting ??= this.retrier(async () => {
      const seed = (this.seed ??= this.nextSeed())
      try {
        await this.hold(seed)
      } catch (e) {
        this.seed = this.nextSeed()
        throw e
      }
    }).finally(() => (this.connecting = undefined))
    return this.connecting
  }

  /** One try to connect, whatever the metadata says. */
  async hold(node: number): Promise<void> {
    if (this.connections.has(node)) return
    const work = this.broker.clock.track(() => `connect to ${addressOf(node)}`)
    try {
      await this.broker.clock.turn()
      if (this.connections.has(node)) return
      const line = { node, client: this.client }
      if (!this.broker.reaches(line)) throw connectionRefused(node)
      this.connections.set(
        node,
        this.broker.onBreak(() => this.lost(node), line),
      )
    } finally {
      work.done()
    }
  }

  async find(node: number): Promise<BrokerHandle> {
    const known = this.brokers.get(node)
    if (known === undefined) throw new KafkaJSBrokerNotFound(`Broker ${node} not found in the cached metadata`)
    await this.hold(node)
    return known
  }

  /** A node that is connected, or can be; the seed, with patience, where none of those known can. */
  async any(): Promise<number> {
    const ids = this.ids()
    const connected = ids.find((id) => this.connections.has(id))
    if (connected !== undefined) return connected
    for (const id of ids) {
      try {
        return (await this.find(id)).nodeId
      } catch {
        // The next one.
      }
    }
    await this.connect()
    return this.seed !== undefined && this.connections.has(this.seed) ? this.seed : this.firstConnected()
  }

  /** What metadata says: handles of nodes that stay are kept. */
  update(nodes: readonly number[], controller: number): void {
    this.controller = controller
    for (const id of this.ids()) if (!nodes.includes(id)) this.lost(id)
    this.brokers = new Map(nodes.map((nodeId) => [nodeId, this.brokers.get(nodeId) ?? this.handleOf(nodeId)]))
  }

  remove(port: number | undefined): void {
    const node = this.ids().find((id) => portOf(id) === port)
    if (node === undefined) return
    this.brokers.delete(node)
    this.lost(node)
    if (this.seed === node) this.seed = this.ids()[0]
  }

  /** Its connection is gone. */
  lost(node: number): void {
    this.connections.get(node)?.()
    this.connections.delete(node)
  }

  disconnect(): void {
    for (const node of [...this.connections.keys()]) this.lost(node)
    this.brokers.clear()
  }

  lineTo(node: number, kind: RequestKind): object {
    const key = `${node} ${kind === 'fetch' ? 'fetch' : ''}`
    const line = this.lines.get(key) ?? {}
    this.lines.set(key, line)
    return line
  }

  private handleOf(nodeId: number): BrokerHandle {
    return { nodeId, fetch: (request) => this.fetchFrom(nodeId, request) }
  }

  private nextSeed(): number {
    return FIRST + (this.seeds++ % this.broker.nodes.count)
  }

  private firstConnected(): number {
    return [...this.connections.keys()][0] ?? FIRST
  }
}
