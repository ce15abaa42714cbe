/**
 * The slice of kafkajs that is used here, described by shape: the real client fits (a type test says so), a fake one
 * fits, and nothing of kafkajs is imported.
 */
import type { Message } from '../../record'

export interface GroupJoinPayload {
  memberId: string
  memberAssignment: { [topic: string]: number[] }
}

export interface EndBatchPayload {
  topic: string
  partition: number
  batchSize: number
  firstOffset: string
  lastOffset: string
}

export interface CrashPayload {
  error: Error
  restart: boolean
}

export interface OffsetsByTopic {
  topics: { topic: string; partitions: { partition: number; offset: string; metadata?: string | null }[] }[]
}

export interface BatchLike {
  topic: string
  partition: number
  messages: Message[]
  lastOffset(): string
}

export interface EachBatchPayload {
  batch: BatchLike
  resolveOffset(offset: string): void
  commitOffsetsIfNecessary: (offsets?: OffsetsByTopic) => Promise<void>
}

export interface FetchRequest {
  maxWaitTime?: number | undefined
  maxBytes: number
  topics: { topic: string; partitions: { partition: number; fetchOffset: string; maxBytes: number }[] }[]
}

export interface FetchAnswer {
  responses: unknown[]
}

export interface BrokerLike {
  fetch(request: FetchRequest): Promise<FetchAnswer>
}

export interface ClusterLike {
  findTopicPartitionMetadata(topic: string): { partitionId: number }[]
  findBroker?(node: { nodeId: string }): Promise<BrokerLike>
}

export interface AssignerLike {
  name: string
  version: number
  assign(group: {
    members: { memberId: string; memberMetadata: Buffer }[]
    topics: string[]
  }): Promise<{ memberId: string; memberAssignment: Buffer }[]>
  protocol(subscription: { topics: string[] }): { name: string; metadata: Buffer }
}

export interface ConsumerLike {
  connect(): Promise<void>
  disconnect(): Promise<void>
  subscribe(subscription: { topics: string[]; fromBeginning?: boolean }): Promise<void>
  run(config: {
    autoCommit?: boolean
    eachBatchAutoResolve?: boolean
    partitionsConsumedConcurrently?: number
    eachBatch?: (payload: EachBatchPayload) => Promise<void>
  }): Promise<void>
  commitOffsets(
    offsets: { topic: string; partition: number; offset: string; metadata?: string | null }[],
  ): Promise<void>
  describeGroup(): Promise<{ state: string; members: readonly { memberMetadata: Buffer }[] }>
  seek(position: { topic: string; partition: number; offset: string }): void
  pause(topics: { topic: string; partitions?: number[] }[]): void
  resume(topics: { topic: string; partitions?: number[] }[]): void
  on(name: 'consumer.group_join', listener: (event: { payload: GroupJoinPayload }) => void): unknown
  on(name: 'consumer.rebalancing', listener: () => void): unknown
  on(name: 'consumer.crash', listener: (event: { payload: CrashPayload }) => void): unknown
  on(name: 'consumer.fetch', listener: () => void): unknown
  on(name: 'consumer.fetch_start', listener: () => void): unknown
  on(name: 'consumer.heartbeat', listener: () => void): unknown
  on(name: 'consumer.network.request_timeout', listener: () => void): unknown
  on(name: 'consumer.commit_offsets', listener: () => void): unknown
  on(name: 'consumer.end_batch_process', listener: (event: { payload: EndBatchPayload }) => void): unknown
}

export interface RecordMetadataLike {
  topicName: string
  partition: number
  errorCode: number
}

export interface ProducerBatchLike {
  acks?: number
  timeout?: number
  compression?: number
  topicMessages?: {
    topic: string
    messages: {
      key?: Buffer | string | null
      value: Buffer | string | null
      partition?: number
      headers?: { [name: string]: Buffer | string | (Buffer | string)[] | undefined }
    }[]
  }[]
}

export interface ProducerLike {
  connect(): Promise<void>
  disconnect(): Promise<void>
  sendBatch(batch: ProducerBatchLike): Promise<RecordMetadataLike[]>
  transaction(): Promise<TransactionLike>
}

export interface TransactionLike {
  sendBatch(batch: ProducerBatchLike): Promise<RecordMetadataLike[]>
  sendOffsets(offsets: OffsetsByTopic & { consumerGroupId: string }): Promise<void>
  commit(): Promise<void>
  abort(): Promise<void>
}

export interface AdminLike {
  connect(): Promise<void>
  disconnect(): Promise<void>
  on?(name: 'admin.network.request_timeout', listener: () => void): unknown
  describeCluster(): Promise<{ clusterId: string }>
  listTopics(): Promise<string[]>
  fetchTopicMetadata(options?: {
    topics: string[]
  }): Promise<{ topics: { name: string; partitions: { partitionId: number }[] }[] }>
  describeConfigs(request: {
    includeSynonyms: boolean
    resources: { type: number; name: string; configNames?: string[] }[]
  }): Promise<{
    resources: { resourceName: string; configEntries: { configName: string; configValue: string }[] }[]
  }>
  createTopics(request: {
    waitForLeaders?: boolean
    topics: {
      topic: string
      numPartitions?: number
      replicationFactor?: number
      configEntries?: { name: string; value: string }[]
    }[]
  }): Promise<boolean>
  fetchOffsets(request: {
    groupId: string
    topics?: string[]
  }): Promise<{ topic: string; partitions: { partition: number; offset: string; metadata: string | null }[] }[]>
  fetchTopicOffsets(topic: string): Promise<{ partition: number; offset: string; high: string; low: string }[]>
  fetchTopicOffsetsByTimestamp(topic: string, timestamp?: number): Promise<{ partition: number; offset: string }[]>
}

export interface KafkaJsLike {
  consumer(config: {
    groupId: string
    partitionAssigners?: ((config: { groupId: string; cluster: never; logger: never }) => AssignerLike)[]
    sessionTimeout?: number
    heartbeatInterval?: number
    rebalanceTimeout?: number
    maxWaitTimeInMs?: number
    maxBytes?: number
    maxBytesPerPartition?: number
    metadataMaxAge?: number
    allowAutoTopicCreation?: boolean
    retry?: {
      initialRetryTime?: number
      maxRetryTime?: number
      retries?: number
      restartOnFailure?: (error: Error) => Promise<boolean>
    }
  }): ConsumerLike
  producer(config?: {
    allowAutoTopicCreation?: boolean
    idempotent?: boolean
    transactionalId?: string
    transactionTimeout?: number
    createPartitioner?: () => (args: never) => number
    retry?: { initialRetryTime?: number; maxRetryTime?: number; retries?: number }
  }): ProducerLike
  admin(config?: { retry?: { initialRetryTime?: number; maxRetryTime?: number; retries?: number } }): AdminLike
}
