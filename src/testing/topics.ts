import { RetrylineError } from '../errors'
import { protocolError } from './errors'
import { PartitionLog, type Topic } from './log'
import { isValidSetting, TOPIC_DEFAULTS } from './topic-settings'

const VALID_NAME = /^[a-zA-Z0-9._-]{1,249}$/

export interface TopicOptions {
  partitions?: number
  replicationFactor?: number
  config?: Readonly<Record<string, string>>
  validateOnly?: boolean
}

const NODE_HOST = { host: 'fake-broker', port: 9092 }

export class TopicStore {
  private readonly topics = new Map<string, Topic>()
  private readonly watchers = new Set<() => void>()

  /** `brokers` is a number that topics are measured against; one broker does all the work. */
  constructor(private readonly brokers = 1) {}

  nodes(): { nodeId: number; host: string; port: number }[] {
    return Array.from({ length: this.brokers }, (_, i) => ({ ...NODE_HOST, nodeId: i + 1 }))
  }

  create(name: string, options: TopicOptions = {}): void {
    const { partitions = 1, replicationFactor = this.brokers, config = {}, validateOnly = false } = options
    if (!VALID_NAME.test(name) || name === '.' || name === '..') throw protocolError('INVALID_TOPIC_EXCEPTION')
    if (this.topics.has(name)) throw protocolError('TOPIC_ALREADY_EXISTS')
    if (!Number.isInteger(partitions) || partitions < 1) throw protocolError('INVALID_PARTITIONS')
    if (replicationFactor < 1 || replicationFactor > this.brokers) throw protocolError('INVALID_REPLICATION_FACTOR')
    checkConfig(config)
    if (validateOnly) return
    const logs = Array.from({ length: partitions }, () => new PartitionLog())
    this.topics.set(name, {
      name,
      partitions: logs,
      replicas: replicationFactor,
      config: new Map(Object.entries(config)),
    })
    this.changed()
  }

  /** Replaces all that was set, as AlterConfigs does. */
  configure(name: string, config: Readonly<Record<string, string>>, validateOnly = false): void {
    const topic = this.get(name)
    checkConfig(config)
    if (validateOnly) return
    topic.config.clear()
    for (const [key, value] of Object.entries(config)) topic.config.set(key, value)
  }

  grow(name: string, count: number, validateOnly = false): void {
    const topic = this.get(name)
    if (!Number.isInteger(count) || count <= topic.partitions.length) throw protocolError('INVALID_PARTITIONS')
    if (validateOnly) return
    while (topic.partitions.length < count) topic.partitions.push(new PartitionLog())
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

  private changed(): void {
    for (const fn of [...this.watchers]) fn()
  }
}

function checkConfig(config: Readonly<Record<string, string>>): void {
  if (!Object.entries(config).every(([name, value]) => isValidSetting(name, value)))
    throw protocolError('INVALID_CONFIG')
}
