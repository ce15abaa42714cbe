export { CLOCK, PROCESS, clockOf, processOf } from './clock'
export type { Clock, Timer, Work } from './clock'
export { systemClock } from './system-clock'
export { RANDOM, randomOf, systemRandom } from './random'
export type { Random } from './random'
export { silentLogger } from './logger'
export type { Logger } from './logger'
export type {
  Acknowledgement,
  Assignment,
  CommitEntry,
  CommittedOffset,
  Driver,
  DriverTools,
  FetchedBatch,
  GroupConsumer,
  GroupConsumerOptions,
  GroupListener,
  LogRange,
  NewTopic,
  Publisher,
  TopicAdmin,
  TopicPartition,
  TopicSettings,
  Transaction,
  Transactor,
} from './driver'
export { allowCommand } from './acl'
export type { AclOperation, AclResource } from './acl'
