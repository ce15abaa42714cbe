/**
 * One consumer's place in its group: joining, syncing, heartbeating, leaving. What it is assigned it hands on.
 *
 * outside -> join waits at the broker -> joined -> sync waits -> member of a generation -> (a rebalance, an expired
 * session) -> joins again, with its id or without -> left, or given up and dropped at the end of its session.
 *
 * Must never happen: news of a rebalance that is lost between two polls (`news` stands until a heartbeat has asked).
 */
import type { Cluster } from './cluster'
import { KafkaJSNonRetriableError } from './errors'
import { CONSUMER_EVENTS, type Instrumentation } from './events'
import { decodeAssignment } from './member-protocol'
import { NOBODY } from './nodes'
import type { Identity } from './offset-manager'
import type { Assigner, TopicPartitions } from './types'

const { HEARTBEAT, RECEIVED_UNSUBSCRIBED_TOPICS } = CONSUMER_EVENTS

export interface MembershipSettings {
  readonly cluster: Cluster
  readonly events: Instrumentation
  readonly groupId: string
  readonly topics: readonly string[]
  readonly assigners: readonly Assigner[]
  readonly sessionTimeout: number
  readonly rebalanceTimeout: number
}

export class Membership {
  memberId: string | null = null
  leaderId = ''
  groupProtocol = ''
  /** Partitions of the subscribed topics, as they were known at the last sync. */
  knownPartitions: Map<string, number[]> | undefined
  /** The broker has something that only a heartbeat tells. */
  news = false
  private generationId = -1
  private members: { memberId: string; memberMetadata: Buffer }[] = []
  /** The node that coordinated the group when this member last joined; it is held on to until the next join. */
  private node = NOBODY
  /** How many polls stand at this moment. */
  private standing = 0
  private lastRequest: number
  private beating: Promise<void> | undefined

  constructor(
    private readonly settings: MembershipSettings,
    private readonly onNews: () => void,
  ) {
    this.lastRequest = this.clock.now()
  }

  get identity(): Identity {
    const { generationId, node } = this
    return { groupId: this.settings.groupId, generationId, memberId: this.memberId ?? '', node }
  }

  get isLeader(): boolean {
    return this.leaderId !== '' && this.memberId === this.leaderId
  }

  async join(): Promise<void> {
    const { cluster, groupId, assigners, sessionTimeout, rebalanceTimeout, topics } = this.settings
    const protocols = assigners.map((assigner) => assigner.protocol({ topics: [...topics] }))
    const { slowPolls, clientId } = cluster.context
    const nudge = (): void => {
      // With slow polls a member hears of it when its next heartbeat is due, as in kafkajs.
      if (slowPolls) return
      this.news = true
      this.onNews()
    }
    this.node = await cluster.findGroupCoordinator(groupId)
    const answer = await cluster.send(
      {
        kind: 'join',
        node: this.node,
        api: 'JoinGroup',
        label: `join of ${groupId}`,
        group: groupId,
        topics: topics.map((topic) => ({ topic })),
        timeout: rebalanceTimeout + 5000,
      },
      () => {
        this.checkCoordinator()
        const memberId = this.memberId ?? ''
        return this.coordinator.join({
          groupId,
          memberId,
          clientId,
          sessionTimeout,
          rebalanceTimeout,
          protocols,
          nudge,
        })
      },
    )
    this.news = false
    this.generationId = answer.generationId
    this.leaderId = answer.leaderId
    this.memberId = answer.memberId
    this.members = answer.members
    this.groupProtocol = answer.groupProtocol
    if (this.standing > 0) this.tellPolling()
  }

  /** Answers what this member is assigned of the topics it subscribed to. */
  async sync(): Promise<TopicPartitions[]> {
    const { cluster, groupId, topics } = this.settings
    const { generationId, memberId } = this.identity
    const assignments = this.isLeader ? await this.assign() : new Map<string, Buffer>()
    this.knownPartitions = this.partitionsPerTopic()
    const bytes = await cluster.send(
      { kind: 'sync', api: 'SyncGroup', label: `sync of ${groupId}`, group: groupId, node: this.node },
      () => this.checkCoordinator().sync(groupId, generationId, memberId, assignments),
    )
    const decoded = decodeAssignment(bytes)?.assignment ?? {}
    this.reportUnsubscribed(Object.keys(decoded))
    const mine = Object.entries(decoded)
      .filter(([topic]) => topics.includes(topic))
      .map(([topic, partitions]) => ({ topic, partitions }))
    const known = this.knownPartitions
    if (mine.some(({ topic, partitions }) => partitions.some((id) => !known.get(topic)?.includes(id)))) {
      await cluster.refreshMetadata()
      this.knownPartitions = this.partitionsPerTopic()
    }
    return mine
  }

  /** Leaves while it still can; a group that it cannot reach will miss it at the end of its session. */
  async leave(): Promise<void> {
    const { cluster, groupId } = this.settings
    const { memberId } = this
    if (!memberId) return
    await cluster.send(
      { kind: 'leave', api: 'LeaveGroup', label: `leave of ${groupId}`, group: groupId, node: this.node },
      () => this.checkCoordinator().leave(groupId, memberId),
    )
    this.memberId = null
  }

  /** One at a time; nothing where none is due and there is no news. */
  async heartbeat(interval: number): Promise<void> {
    this.beating ??= this.beat(interval).finally(() => (this.beating = undefined))
    return this.beating
  }

  /** A polling member heartbeats all the time, whatever the clock does meanwhile; until the returned function is called. */
  stopsSession(): () => void {
    if (this.standing++ === 0) this.tellPolling()
    let over = false
    return () => {
      if (over) return
      over = true
      if (--this.standing === 0) this.tellPolling()
    }
  }

  /** Also when the connection breaks: the heartbeats of a client that is cut off arrive no more. */
  tellPolling(): void {
    const { cluster, groupId } = this.settings
    const heard = this.standing > 0 && !cluster.broker.isCutOff(cluster.context)
    if (this.memberId) this.coordinator.polling(groupId, this.memberId, heard)
  }

  partitionsPerTopic(): Map<string, number[]> {
    const { cluster, topics } = this.settings
    const idsOf = (topic: string) => cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId)
    return new Map(topics.map((topic) => [topic, idsOf(topic)]))
  }

  private get clock() {
    return this.settings.cluster.broker.clock
  }

  private get coordinator() {
    return this.settings.cluster.broker.coordinator
  }

  /** At the broker: the node that is asked must be the one. */
  private checkCoordinator() {
    this.settings.cluster.broker.checkCoordinator(this.settings.groupId, this.node)
    return this.coordinator
  }

  private async assign(): Promise<Map<string, Buffer>> {
    const { cluster, assigners, topics } = this.settings
    const assigner = assigners.find(({ name }) => name === this.groupProtocol)
    if (assigner === undefined) {
      throw new KafkaJSNonRetriableError(
        `Unsupported partition assigner "${this.groupProtocol}", the assigner wasn't found in the assigners list`,
      )
    }
    await cluster.refreshMetadata()
    const shares = await assigner.assign({ members: this.members, topics: [...topics] })
    return new Map(shares.map(({ memberId, memberAssignment }) => [memberId, memberAssignment]))
  }

  private reportUnsubscribed(assignedTopics: readonly string[]): void {
    const { topics: topicsSubscribed, events } = this.settings
    const topicsNotSubscribed = assignedTopics.filter((topic) => !topicsSubscribed.includes(topic))
    if (topicsNotSubscribed.length === 0) return
    const of = { assignedTopics, topicsSubscribed, topicsNotSubscribed }
    const { groupId, generationId, memberId } = this.identity
    events.emit(RECEIVED_UNSUBSCRIBED_TOPICS, { groupId, generationId, memberId, ...of })
  }

  private async beat(interval: number): Promise<void> {
    const { cluster, events } = this.settings
    const { groupId, generationId, memberId } = this.identity
    // Without a member id kafkajs never asks: what there is to hear stays unheard.
    if (memberId === '') this.news = false
    if (memberId === '' || (!this.news && this.clock.now() < this.lastRequest + interval)) return
    this.news = false
    await cluster.send(
      { kind: 'heartbeat', api: 'Heartbeat', label: `heartbeat of ${groupId}`, group: groupId, node: this.node },
      () => this.checkCoordinator().heartbeat(groupId, generationId, memberId),
    )
    events.emit(HEARTBEAT, { groupId, memberId, groupGenerationId: generationId })
    this.lastRequest = this.clock.now()
  }
}
