/**
 * The shapes of kafkajs that the fake gives and takes, in our own words: the test kit must not need kafkajs to be
 * installed, not even for its types. That kafkajs's own types fit is held by test/types/testing.test-d.ts.
 */
import type { Message } from '../record'
import type { On } from './events'
import type { RetryOptions } from './retrier'

export interface FakeLogger {
  info(message: string, extra?: object): void
  error(message: string, extra?: object): void
  warn(message: string, extra?: object): void
  debug(message: string, extra?: object): void
  namespace(namespace: string, logLevel?: number): FakeLogger
  setLogLevel(logLevel: number): void
}

export interface PartitionMetadata {
  partitionErrorCode: number
  partitionId: number
  leader: number
  replicas: number[]
  isr: number[]
  offlineReplicas: number[]
}

/** What a partition assigner is given of the cluster: what assigners use, not all that kafkajs has. */
export interface FakeCluster {
  findTopicPartitionMetadata(topic: string): PartitionMetadata[]
  addTargetTopic(topic: string): Promise<void>
  addMultipleTargetTopics(topics: string[]): Promise<void>
  refreshMetadata(): Promise<void>
  refreshMetadataIfNecessary(): Promise<void>
  findLeaderForPartitions(topic: string, partitions: number[]): { [leader: string]: number[] }
  getNodeIds(): number[]
  isConnected(): boolean
  /** Its `findGroupCoordinator` gives the number of the node only, or the broker's refusal. */
  findControllerBroker(): Promise<{ findGroupCoordinator(about: { groupId: string }): Promise<number> }>
}

export interface Assigner {
  name: string
  version: number
  assign(group: {
    members: { memberId: string; memberMetadata: Buffer }[]
    topics: string[]
  }): Promise<{ memberId: string; memberAssignment: Buffer }[]>
  protocol(subscription: { topics: string[] }): { name: string; metadata: Buffer }
}

export interface AssignerConfig {
  // `any`, so that an assigner written against kafkajs's own Cluster type may be given as it is.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  cluster: any
  groupId: string
  logger: FakeLogger
}

export type PartitionAssigner = (config: AssignerConfig) => Assigner
export type AssignerFactory = (config: { cluster: FakeCluster; groupId: string; logger: FakeLogger }) => Assigner

export interface FakeConsumerConfig {
  groupId: string
  partitionAssigners?: PartitionAssigner[]
  metadataMaxAge?: number
  sessionTimeout?: number
  rebalanceTimeout?: number
  heartbeatInterval?: number
  maxBytesPerPartition?: number
  minBytes?: number
  maxBytes?: number
  maxWaitTimeInMs?: number
  retry?: RetryOptions
  allowAutoTopicCreation?: boolean
  maxInFlightRequests?: number
  readUncommitted?: boolean
  rackId?: string
}

export interface TopicPartitions {
  topic: string
  partitions: number[]
}

export interface PartitionOffset {
  partition: number
  offset: string
}

export interface TopicOffsets {
  topic: string
  partitions: (PartitionOffset & { metadata?: string | null })[]
}

export interface FakeBatch {
  topic: string
  partition: number
  /** The position that was asked for. kafkajs has it too, though not in its types. */
  fetchedOffset: string
  highWatermark: string
  messages: FakeMessage[]
  isEmpty(): boolean
  firstOffset(): string | null
  lastOffset(): string
  offsetLag(): string
  offsetLagLow(): string
}

/** Headers are declared as kafkajs declares them; a null header is there as null all the same, there as here. */
export type FakeMessage = Omit<Message, 'headers' | 'size'> & { headers: FakeHeaders; size?: never }

export interface EachMessagePayload {
  topic: string
  partition: number
  message: FakeMessage
  heartbeat(): Promise<void>
  pause(): () => void
}

export interface EachBatchPayload {
  batch: FakeBatch
  resolveOffset(offset: string): void
  heartbeat(): Promise<void>
  pause(): () => void
  commitOffsetsIfNecessary(offsets?: { topics: TopicOffsets[] }): Promise<void>
  uncommittedOffsets(): { topics: TopicOffsets[] }
  isRunning(): boolean
  isStale(): boolean
}

export interface RunConfig {
  autoCommit?: boolean
  autoCommitInterval?: number | null
  autoCommitThreshold?: number | null
  eachBatchAutoResolve?: boolean
  partitionsConsumedConcurrently?: number
  eachBatch?: (payload: EachBatchPayload) => Promise<void>
  eachMessage?: (payload: EachMessagePayload) => Promise<void>
}

export interface TopicSelection {
  topic: string
  partitions?: number[]
}

export interface GroupDescription {
  groupId: string
  members: {
    clientHost: string
    clientId: string
    memberId: string
    memberAssignment: Buffer
    memberMetadata: Buffer
  }[]
  protocol: string
  protocolType: string
  state: 'Unknown' | 'PreparingRebalance' | 'CompletingRebalance' | 'Stable' | 'Dead' | 'Empty'
}

export interface FakeHeaders {
  [name: string]: Buffer | string | (Buffer | string)[] | undefined
}

export interface OutgoingMessage {
  key?: Buffer | string | null
  value: Buffer | string | null
  partition?: number
  headers?: FakeHeaders
  timestamp?: string
}

export interface RecordMetadata {
  topicName: string
  partition: number
  errorCode: number
  baseOffset?: string
  logAppendTime?: string
  logStartOffset?: string
}

export type Partitioner = (args: {
  topic: string
  partitionMetadata: PartitionMetadata[]
  message: OutgoingMessage
}) => number

export interface FakeProducerConfig {
  createPartitioner?: () => Partitioner
  retry?: RetryOptions
  metadataMaxAge?: number
  allowAutoTopicCreation?: boolean
  idempotent?: boolean
  transactionalId?: string
  transactionTimeout?: number
  maxInFlightRequests?: number
}

export type { On, RetryOptions }
