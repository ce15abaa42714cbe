/** What a story about three nodes needs beside what every story needs. */
import { plain, type Stage } from '../stage'

export interface NodesStage extends Omit<Stage, 'loseAnswers' | 'create' | 'kafka'> {
  /** Three tries within half a second. */
  readonly kafka: Stage['kafka']
  /** Partition 0 is led by node 1, partition 1 by node 2, partition 2 by node 3, and so on. */
  create(name: string, partitions: number, options?: CreateOptions): Promise<void>
  /** The connection to a node breaks before the next produce request that would go there is sent. */
  cutNextPublish(node: number): void
  /** Another node leads the partition; resolves when the cluster says so. */
  moveLeader(topic: string, partition: number, node: number): Promise<void>
  /** A node leaves, in good order; resolves when the others say so. */
  down(node: number): Promise<void>
  up(node: number): Promise<void>
}

export interface CreateOptions {
  replicas?: 1 | 3
  config?: Record<string, string>
}

export type NodesStory = (stage: NodesStage) => Promise<void>

export const RETRY = { retries: 3, initialRetryTime: 100, maxRetryTime: 200 }

/** Nodes by their numbers, wherever they listen. */
export function plainNodes(value: unknown, prefix: string, ports: readonly number[]): unknown {
  const text = JSON.stringify(plain(value, prefix), (_, one: unknown) => (one === undefined ? null : one))
  return JSON.parse(
    text.replace(/(?:127\.0\.0\.1|fake-broker):(\d+)/g, (whole, port) => {
      const at = ports.indexOf(Number(port))
      return at < 0 ? String(whole) : `<node ${at + 1}>`
    }),
  )
}
