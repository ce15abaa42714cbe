/** `kafka.broker`: faults, and what happens to a cluster from outside. */
import { RetrylineError } from '../errors'
import type { FakeBroker } from './broker'
import { checkRequest } from './checked-arguments'
import { KafkaJSError, KafkaJSNumberOfRetriesExceeded } from './errors'
import type { LiveConsumer } from './fake-consumer'
import type { EveryRequest, NextRequest, RequestFilter, RequestKind } from './faults'
import type { GroupState } from './group-types'
import { createNodeControls, type NodeControls } from './node-controls'
import type { StoredRecord } from './log'
import { decodeAssignment } from './member-protocol'
import { DEFAULT_RETRY } from './retrier'
import type { TransactionView } from './transaction-coordinator'

export interface GroupMemberView {
  readonly memberId: string
  readonly clientId: string
  readonly isLeader: boolean
  readonly assignment: Record<string, number[]>
}

export interface BrokerControls extends NodeControls {
  /** What happens to the next request of a kind (and topic, partition, group): once, to the first that fits. */
  next(kind: RequestKind, where?: RequestFilter): NextRequest
  /** To all of them, until stopped. */
  every(kind: RequestKind, where?: RequestFilter): EveryRequest
  /** The group rebalances, though its members stay. */
  rebalance(groupId: string): void
  /** Consumers die: all of a group, or the one of a member id. Without an error of one that kafkajs restarts after. */
  crash(groupOrMemberId: string, error?: Error): void
  /** The coordinator drops a member, as after a session without heartbeats. */
  expireSession(memberId: string): void
  members(groupId: string): GroupMemberView[]
  group(groupId: string): { state: GroupState; generation: number }
  /**
   * A client (as `kafka.client()` gives it) is cut off, as a process that has died or whose network is gone: its
   * connections break, nothing of it arrives any more, and its sessions run out.
   */
  cutOff(client: object): void
  reconnect(client: object): void
  /** What the broker knows of a transactional id: who owns it (by epoch), and what its open transaction touches. */
  transaction(transactionalId: string): TransactionView
  /** The marker of somebody's transaction: takes an offset, and no handler sees it. */
  appendMarker(topic: string, partition: number): bigint
  /** Compaction: records go (the last one never does), offsets stay. */
  compact(topic: string, partition: number, keep: (record: { offset: bigint; key: Buffer | null }) => boolean): void
}

export function createBrokerControls(
  broker: FakeBroker,
  consumers: readonly LiveConsumer[],
  contextOf: (client: object) => object | undefined,
): BrokerControls {
  const missing = (what: string): RetrylineError =>
    new RetrylineError(
      'RETRYLINE_TESTING',
      `${what}; groups of the fake broker: ${broker.coordinator.names().join(', ') || 'none'}`,
    )

  const known = (client: object): object => {
    const context = contextOf(client)
    if (context !== undefined) return context
    throw new RetrylineError('RETRYLINE_TESTING', 'not a client of this fake broker: give what kafka.client() gave')
  }

  return {
    ...createNodeControls(broker),
    next(kind, where) {
      checkRequest('kafka.broker.next()', kind, where)
      return broker.faults.next(kind, where)
    },

    every(kind, where) {
      checkRequest('kafka.broker.every()', kind, where)
      return broker.faults.every(kind, where)
    },

    rebalance(groupId) {
      if (broker.coordinator.view(groupId).members.length === 0) throw missing(`group ${groupId} has no members`)
      broker.coordinator.rebalance(groupId)
    },

    crash(groupOrMemberId, error) {
      const dying = consumers.filter((one) => one.groupId === groupOrMemberId || one.memberId() === groupOrMemberId)
      const { retries, initialRetryTime } = DEFAULT_RETRY
      const cause = new KafkaJSError('a crash that the test asked for')
      const reason = error ?? new KafkaJSNumberOfRetriesExceeded(cause, retries, initialRetryTime)
      const died = dying.map((one) => one.crash(reason))
      if (!died.includes(true)) throw missing(`no running consumer has the group or member id ${groupOrMemberId}`)
    },

    expireSession(memberId) {
      if (!broker.coordinator.expire(memberId)) throw missing(`no group has a member ${memberId}`)
    },

    members: (groupId) =>
      broker.coordinator.view(groupId).members.map(({ memberId, clientId, isLeader, assignment }) => ({
        memberId,
        clientId,
        isLeader,
        assignment: decodeAssignment(assignment)?.assignment ?? {},
      })),

    group(groupId) {
      const { state, generationId } = broker.coordinator.view(groupId)
      return { state, generation: generationId }
    },

    cutOff: (client) => broker.cutOff(known(client)),
    reconnect: (client) => broker.reconnect(known(client)),
    transaction(transactionalId) {
      const found = broker.transactions.view(transactionalId)
      if (found !== undefined) return found
      throw new RetrylineError(
        'RETRYLINE_TESTING',
        `no producer has begun a transaction as ${transactionalId}; transactional ids of the fake broker: ` +
          (broker.transactions.ids().join(', ') || 'none'),
      )
    },

    appendMarker(topic, partition) {
      const log = broker.topics.mustFind(topic, partition).partitions[partition]
      const producerId = broker.transactions.newProducerId()
      return log?.appendMarker({ producerId, epoch: 0 }, true, broker.clock.now()) ?? -1n
    },

    compact(topic, partition, keep) {
      const log = broker.topics.mustFind(topic, partition).partitions[partition]
      log?.compact((record: StoredRecord) => record.control || keep(record))
    },
  }
}
