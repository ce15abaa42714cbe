/** The part of `kafka.broker` about nodes, leaders, disks and permissions. */
import { RetrylineError } from '../errors'
import type { FakeBroker } from './broker'
import type { ProtocolErrorType } from './error-codes'
import type { RequestFilter, RequestKind } from './faults'
import { NOBODY } from './nodes'

export interface Stoppable {
  stop(): void
}

export interface NodeControls {
  /**
   * A node goes down: its connections break, new ones are refused, and at once another replica leads what it led and
   * coordinates its groups. What has its only replica there has no leader. Without a number: all nodes at once, and
   * nobody takes over.
   */
  down(node?: number): void
  /** It is back, in sync; what others lead by now stays with them. Without a number: all that are down. */
  up(node?: number): void
  /** Another node leads a partition from now on; clients hear of it when the old one refuses them. */
  moveLeader(topic: string, partition: number, node: number): void
  /** Nobody leads the partition (or any of the topic), until `moveLeader` or a node that comes up. */
  loseLeader(topic: string, partition?: number): void
  /** Another node coordinates a group from now on; its members hear of it by NOT_COORDINATOR_FOR_GROUP. */
  moveCoordinator(groupId: string, node: number): void
  /** The node that leads a partition (-1: none), or that coordinates a group. */
  nodeOf(what: { topic: string; partition: number } | { group: string }): number
  /** Nothing can be written any more (on one node, or on all): KAFKA_STORAGE_ERROR, until stopped. */
  fullDisk(node?: number): Stoppable
  /**
   * Refused from now on with TOPIC_AUTHORIZATION_FAILED or GROUP_AUTHORIZATION_FAILED, until stopped. To `read` is
   * to fetch a topic; to `write` is to publish to it; `all` is that and to look at it (metadata, positions).
   */
  deny(what: { topic: string; to?: 'read' | 'write' | 'all' } | { group: string }): Stoppable
  /** What retention and compaction throw away goes now: all of a topic, or one partition. */
  clean(topic: string, partition?: number): void
  /** The topic is gone, and what groups have committed of it. */
  deleteTopic(topic: string): void
}

const OF_TOPIC: Readonly<Record<'read' | 'write' | 'all', readonly RequestKind[]>> = {
  read: ['fetch'],
  write: ['publish'],
  all: ['fetch', 'publish', 'metadata', 'positions'],
}
const OF_GROUP: readonly RequestKind[] = ['coordinator', 'join', 'sync', 'heartbeat', 'leave', 'commit', 'offsets']

export function createNodeControls(broker: FakeBroker): NodeControls {
  const { topics, nodes, faults } = broker

  function checked(node: number): number {
    if (nodes.all().includes(node)) return node
    throw new RetrylineError('RETRYLINE_TESTING', `there is no node ${node}; nodes: ${nodes.all().join(', ')}`)
  }

  const refuse = (kinds: readonly RequestKind[], where: RequestFilter, error: ProtocolErrorType): Stoppable => {
    const standing = kinds.map((kind) => faults.every(kind, where).fail(error))
    return { stop: () => standing.forEach((one) => one.stop()) }
  }

  /** Whoever waits at a leader that is none any more hears of it at once. */
  function moved(): void {
    broker.wakePolls()
    topics.placed()
  }

  return {
    down(node) {
      broker.goDown(node === undefined ? undefined : checked(node))
      moved()
    },

    up: (node) => broker.comeUp(node === undefined ? undefined : checked(node)),

    moveLeader(topic, partition, node) {
      if (!nodes.isUp(checked(node))) throw new RetrylineError('RETRYLINE_TESTING', `node ${node} is down`)
      topics.moveLeader(topic, partition, node)
      moved()
    },

    loseLeader(topic, partition) {
      const all = topics.mustFind(topic, partition).partitions.map((_, id) => id)
      for (const id of partition === undefined ? all : [partition]) topics.moveLeader(topic, id, NOBODY)
      moved()
    },

    moveCoordinator: (groupId, node) => broker.moveCoordinator(groupId, checked(node)),

    nodeOf(what) {
      if ('group' in what) return broker.coordinatorOf(what.group)
      topics.mustFind(what.topic, what.partition)
      return topics.leaderOf(what.topic, what.partition) ?? NOBODY
    },

    fullDisk: (node) => refuse(['publish'], node === undefined ? {} : { node: checked(node) }, 'KAFKA_STORAGE_ERROR'),

    deny(what) {
      if ('group' in what) return refuse(OF_GROUP, { group: what.group }, 'GROUP_AUTHORIZATION_FAILED')
      return refuse(OF_TOPIC[what.to ?? 'all'], { topic: what.topic }, 'TOPIC_AUTHORIZATION_FAILED')
    },

    clean(topic, partition) {
      topics.mustFind(topic, partition).partitions.forEach((log, id) => {
        if (partition === undefined || partition === id) log.cleanNow()
      })
    },

    deleteTopic(topic) {
      topics.mustFind(topic)
      topics.delete(topic)
      broker.coordinator.forgetTopic(topic)
      broker.wakePolls()
    },
  }
}
