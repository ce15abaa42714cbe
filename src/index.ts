/**
 * retryline: resilient Kafka consumers for kafkajs.
 *
 * The front door: everything public is named here.
 */
import { kafkajsDriver, type KafkaJsLike } from './adapters/kafkajs'
import type { ResilientConsumerOptions, StandardSchema } from './config'
import { createConsumer, type ResilientConsumer } from './consume'

/**
 * Runs a kafkajs `eachMessage` handler with non-blocking retries: a failed record is copied to a retry topic, held until
 * it is due, tried again, and after its last attempt (or at once, where retrying cannot help) goes to the dead letter
 * topic. Connects to nothing before `start()`.
 *
 * Throws RETRYLINE_CONFIG with every problem of the options, each naming field, value and mend.
 */
export function createResilientConsumer<
  V = unknown,
  S extends StandardSchema | undefined = StandardSchema<V> | undefined,
>(options: ResilientConsumerOptions<V, S>): ResilientConsumer {
  return createConsumer(options, (kafka, logger) => kafkajsDriver(kafka as KafkaJsLike, logger))
}

export {
  ForbiddenError,
  NonRetryableError,
  OutageError,
  RetryableError,
  RetrylineError,
  isRetrylineError,
  outage,
} from './errors'
export type { ErrorCode, Forbidden } from './errors'
export type {
  BatchContext,
  BatchHandler,
  BatchMessage,
  EachMessage,
  Handler,
  HandlerContext,
  HandlerLogger,
  HandlerMessage,
  MessageBatch,
  OutgoingMessage,
  Source,
} from './record'
export { silentLogger } from './ports'
export type { Logger } from './ports'
export { exponential, fixed } from './topology'
export type { Backoff, Duration, Schedule } from './topology'
export { builtInRules, deadLetter, deadLetterOn, hold, holdOn, retry, retryOn } from './classify'
export type { BuiltInRule, ClassifyContext, ClassifyOption, Match, On, Rule, StatusMatch, Verdict } from './classify'
export { consoleHooks, consoleLogger, memoryHooks } from './observe'
export type { EventOf, EventType, MetricHooks, RetrylineEvent } from './observe'
export type { Decode, DecodeInfo, ResilientConsumerOptions, StandardSchema, TopicNames } from './config'
export type {
  GroupHealth,
  Health,
  PartitionHealth,
  PauseTarget,
  ResilientConsumer,
  StopOptions,
  StopReport,
} from './consume'
