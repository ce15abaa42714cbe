import { RetrylineError } from '../errors'
import { protocolError } from './errors'
import { PartitionLog, type Topic } from './log'
import type { LogWorld } from './log-keeping'
import { FIRST, NOBODY, Nodes, type NodeAddress, type Placement } from './nodes'
import { isValidSetting, TOPIC_DEFAULTS } from './topic-settings'

const VALID_NAME = /^[a-zA-Z0-9._-]{1,249}$/

export interface TopicOptions {
  partitions?: number
  replicationFactor?: number
  config?: Readonly<Record<string, string>>
  validateOnly?: boolean
}

export class TopicStore {
  private readonly topics = new Map<string, Topic>()
  private readonly watchers = new Set<() => void>()

  /** `now` in wall ms; `looks`: when the broker looks for what it may throw away, if it does. */
  constructor(
    private readonly cluster = new Nodes(),
    private readonly now: () => number = () => 0,
    private readonly looks?: LogWorld['looks'],
  ) {}

  private newLog(topic: { readonly config: ReadonlyMap<string, string> }): PartitionLog {
    const { now, looks } = this
    if (looks === undefined) return new PartitionLog()
    return new PartitionLog({ now, looks, setting: (name) => topic.config.get(name) ?? TOPIC_DEFAULTS[name] ?? '' })
  }

  nodes(): NodeAddress[] {
    return this.cluster.addresses()
  }

  private extend(topic: Topic, count: number): void {
    while (topic.partitions.length < count) {
      topic.placements.push(this.place(topic.partitions.length, topic.replicas))
      topic.partitions.push(this.newLog(topic))
    }
  }

  /** Partitions are dealt out: partition 0 is led by node 1, partition 1 by node 2, and so on. */
  private place(partition: number, replicas: number): Placement {
    return this.cluster.place(FIRST + (partition % this.cluster.count), replicas)
  }

  /** The node that leads a partition; -1 where none does, `undefined` where there is no such partition. */
  leaderOf(topic: string, partition: number): number | undefined {
    return this.topics.get(topic)?.placements[partition]?.leader
  }

  /** How many replicas of a partition are in sync, its leader among them. */
  inSync(topic: string, partition: number): number {
    return this.topics.get(topic)?.placements[partition]?.isr.length ?? 0
  }

  /** Refuses what a node that does not lead a partition refuses. */
  checkLeader(topic: string, partition: number, node: number): void {
    const leader = this.leaderOf(topic, partition)
    if (leader === undefined) throw protocolError('UNKNOWN_TOPIC_OR_PARTITION')
    if (leader !== node) throw protocolError('NOT_LEADER_FOR_PARTITION')
  }

  /** -1: from now on nobody leads it. */
  moveLeader(topic: string, partition: number, node: number): void {
    const placement = this.mustFind(topic, partition).placements[partition]
    if (placement === undefined) return
    if (node !== NOBODY && !placement.isr.includes(node)) {
      throw new RetrylineError(
        'RETRYLINE_TESTING',
        `node ${node} cannot lead ${topic}/${partition}: its replicas in sync are on ${placement.isr.join(', ')}`,
      )
    }
    placement.leader = node
  }

  placements(): Placement[] {
    return [...this.topics.values()].flatMap(({ placements }) => placements)
  }

  create(name: string, options: TopicOptions = {}): void {
    const { partitions = 1, replicationFactor = this.cluster.count, config = {}, validateOnly = false } = options
    if (!VALID_NAME.test(name) || name === '.' || name === '..') throw protocolError('INVALID_TOPIC_EXCEPTION')
    if (this.topics.has(name)) throw protocolError('TOPIC_ALREADY_EXISTS')
    if (!Number.isInteger(partitions) || partitions < 1) throw protocolError('INVALID_PARTITIONS')
    if (replicationFactor < 1 || replicationFactor > this.cluster.count)
      throw protocolError('INVALID_REPLICATION_FACTOR')
    checkConfig(config)
    if (validateOnly) return
    const topic: Topic = {
      name,
      partitions: [],
      placements: [],
      replicas: replicationFactor,
      config: new Map(Object.entries(config)),
    }
    this.extend(topic, partitions)
    this.topics.set(name, topic)
    this.changed()
  }

  /** Replaces all that was set, as AlterConfigs does. */
  configure(name: string, config: Readonly<Record<string, string>>, validateOnly = false): void {
    const topic = this.get(name)
    checkConfig(config)
    if (validateOnly) return
    // What was due until now was due under the old settings.
    for (const log of topic.partitions) log.tidy()
    topic.config.clear()
    for (const [key, value] of Object.entries(config)) topic.config.set(key, value)
  }

  grow(name: string, count: number, validateOnly = false): void {
    const topic = this.get(name)
    if (!Number.isInteger(count) || count <= topic.partitions.length) throw protocolError('INVALID_PARTITIONS')
    if (validateOnly) return
    this.extend(topic, count)
    this.changed()
  }

  delete(name: string): void {
    if (!this.topics.delete(name)) throw protocolError('UNKNOWN_TOPIC_OR_PARTITION')
    this.changed()
  }

  find(name: string): Topic | undefined {
    return this.topics.get(name)
  }

  get(name: string): Topic {
    const topic = this.topics.get(name)
    if (topic === undefined) throw protocolError('UNKNOWN_TOPIC_OR_PARTITION')
    return topic
  }

  partition(topic: string, partition: number): PartitionLog | undefined {
    return this.topics.get(topic)?.partitions[partition]
  }

  /** For the test's own look at the log: a missing topic is a typo in the test, so it says which ones there are. */
  mustFind(topic: string, partition?: number): Topic {
    const found = this.topics.get(topic)
    if (found !== undefined && (partition === undefined || found.partitions[partition] !== undefined)) return found
    const names = [...this.topics.values()].map(({ name, partitions }) => `${name} (${partitions.length})`)
    throw new RetrylineError(
      'RETRYLINE_TESTING',
      `there is no ${partition === undefined ? topic : `${topic}/${partition}`} on the fake broker; topics and ` +
        `partitions there: ${names.join(', ') || 'none'}`,
    )
  }

  names(): string[] {
    return [...this.topics.keys()]
  }

  setting(topic: Topic, name: string): string {
    return topic.config.get(name) ?? TOPIC_DEFAULTS[name] ?? ''
  }

  /** Calls back when topics or partitions come or go, until the returned function is called. */
  onChange(fn: () => void): () => void {
    this.watchers.add(fn)
    return () => void this.watchers.delete(fn)
  }

  /** Leaders have changed: who waits for one may look again. */
  placed(): void {
    this.changed()
  }

  private changed(): void {
    for (const fn of [...this.watchers]) fn()
  }
}

function checkConfig(config: Readonly<Record<string, string>>): void {
  if (!Object.entries(config).every(([name, value]) => isValidSetting(name, value)))
    throw protocolError('INVALID_CONFIG')
}
