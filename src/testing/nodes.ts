/**
 * The nodes of the cluster: which of them are up, and who leads what.
 *
 * A partition has replicas on some nodes. One of those that are in sync leads it; when that one goes, the next that is
 * up and in sync takes over, else nobody leads (leader -1) until one in sync is back. A node that comes back is in
 * sync at once and does not take back what it led, as Kafka without its later rebalance of leaders.
 *
 * Must never happen: a leader that is not a replica; a partition whose last replica in sync is forgotten.
 */
export const HOST = 'fake-broker'
export const FIRST = 1
export const NOBODY = -1

/** Node 1 listens on 9092, the next on 9093 and so on. */
export const portOf = (node: number): number => 9091 + node
export const addressOf = (node: number): string => `${HOST}:${portOf(node)}`

export interface Placement {
  leader: number
  readonly replicas: readonly number[]
  isr: readonly number[]
}

export interface NodeAddress {
  readonly nodeId: number
  readonly host: string
  readonly port: number
}

export class Nodes {
  private readonly away = new Set<number>()

  constructor(readonly count = 1) {}

  all(): number[] {
    return Array.from({ length: this.count }, (_, i) => FIRST + i)
  }

  /** Those that are up. */
  live(): number[] {
    return this.all().filter((node) => this.isUp(node))
  }

  isUp(node: number): boolean {
    return node >= FIRST && node < FIRST + this.count && !this.away.has(node)
  }

  /** Which node answers for the whole cluster: the first that is up. */
  get controller(): number {
    return this.live()[0] ?? NOBODY
  }

  addresses(): NodeAddress[] {
    return this.live().map((nodeId) => ({ nodeId, host: HOST, port: portOf(nodeId) }))
  }

  /** Replicas from a first node on, round and round; the first of them leads. */
  place(first: number, replicas: number): Placement {
    const nodes = Array.from({ length: replicas }, (_, i) => FIRST + ((first - FIRST + i) % this.count))
    const placement: Placement = { leader: NOBODY, replicas: nodes, isr: nodes }
    this.elect(placement)
    return placement
  }

  /** `of`: all that is placed. Nobody takes over where the whole cluster goes at once. */
  goDown(nodes: readonly number[], of: Iterable<Placement>): void {
    for (const node of nodes) this.away.add(node)
    if (this.live().length === 0) return
    for (const placement of of) {
      const rest = placement.isr.filter((node) => this.isUp(node))
      if (rest.length > 0) placement.isr = rest
      this.elect(placement)
    }
  }

  comeUp(nodes: readonly number[], of: Iterable<Placement>): void {
    for (const node of nodes) this.away.delete(node)
    for (const placement of of) {
      // Whoever has all that was acknowledged leads; the others copy it from there.
      this.elect(placement)
      if (placement.leader === NOBODY) continue
      placement.isr = placement.replicas.filter((node) => this.isUp(node) || placement.isr.includes(node))
    }
  }

  private elect(placement: Placement): void {
    if (this.isUp(placement.leader)) return
    placement.leader = placement.isr.find((node) => this.isUp(node)) ?? NOBODY
  }
}
