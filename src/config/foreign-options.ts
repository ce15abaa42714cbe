/**
 * What other libraries, kafkajs first, call what is asked of an option here, and by which of ours it is met. Keys are in lower
 * case; each text ends a problem that begins with the foreign name.
 */

const WAITS = "schedule says it, by one wait for each retry, such as ['1m', '10m', '1h']"
const BACKOFF = 'schedule takes it: exponential({ first, factor, max, retries, jitter }), or a list of waits'
const RETRY_TOPICS = 'retry topics come of the schedule; topicNames names them otherwise'
const DEAD_LETTERS = 'dead letters go to <topic>.dlq by themselves; topicNames names it otherwise'
const TOLD = "listen with consumer.on('deadLettered', …) or consumer.on('retried', …), or give hooks"
const JUDGED = 'classify says which errors are retried and which are dead letters'
const COMMITS = 'offsets are committed by themselves, as far as everything below is settled; take it out'
const CLIENT = 'it belongs to the client: kafka: new Kafka({ … })'
const MADE = "topicSetup: 'create' makes retry and dead letter topics, in development"
const AT_ONCE = 'concurrency says how many handlers run at once, and ordering what waits for what'
const FETCHES = 'fetch sizes come of maxBufferedBytes; take it out'
const HANDLER = 'handler takes the function'
const BATCH_HANDLER = 'batchHandler takes a function for many records at once'
const BATCH = 'batch takes { maxRecords, maxBytes, linger }, for a batchHandler'

const INSTEAD: Readonly<Record<string, string>> = {
  ...all(WAITS, 'maxRetries', 'maxRetry', 'maxAttempts', 'attempts', 'retries', 'retry', 'retryCount', 'retryAttempts'),
  ...all(WAITS, 'numRetries', 'delay', 'delays', 'retryDelay', 'retryDelays', 'retryInterval', 'waits', 'tiers'),
  ...all(BACKOFF, 'backoff', 'backoffMs', 'backoffFactor', 'exponentialBackoff', 'factor', 'multiplier', 'jitter'),
  ...all(BACKOFF, 'initialRetryTime', 'maxRetryTime', 'initialDelay', 'maxDelay', 'retryStrategy', 'retryPolicy'),
  ...all(RETRY_TOPICS, 'retryTopic', 'retryTopics', 'retryTopicName', 'retryTopicPrefix', 'retrySuffix'),
  ...all(DEAD_LETTERS, 'dlq', 'dlqTopic', 'dlt', 'deadLetter', 'deadLetterTopic', 'deadLetterTopicName'),
  ...all(DEAD_LETTERS, 'deadLetterQueue', 'dlqTopicName', 'errorTopic', 'dlqSuffix'),
  ...all(TOLD, 'onError', 'onFailure', 'onFailed', 'onRetry', 'onRetries', 'onDeadLetter', 'onDlq', 'onGiveUp'),
  ...all(TOLD, 'errorHandler', 'onEvent', 'listeners', 'metrics', 'onMaxRetries', 'onRetriesExhausted'),
  ...all(JUDGED, 'retryOn', 'retryIf', 'shouldRetry', 'isRetryable', 'isRetriable', 'retryable', 'retryableErrors'),
  ...all(JUDGED, 'nonRetryableErrors', 'fatalErrors', 'classifier', 'errorClassifier', 'rules'),
  ...all(COMMITS, 'autoCommit', 'autoCommitThreshold', 'eachBatchAutoResolve', 'commitOffsets', 'manualCommit'),
  ...all(CLIENT, 'clientId', 'brokers', 'broker', 'bootstrapServers', 'ssl', 'sasl', 'logLevel', 'logCreator'),
  ...all(CLIENT, 'connectionTimeout', 'requestTimeout', 'authenticationTimeout'),
  ...all(MADE, 'allowAutoTopicCreation', 'autoCreateTopics', 'createTopics', 'autoCreate', 'ensureTopics'),
  ...all(AT_ONCE, 'partitionsConsumedConcurrently', 'parallel', 'parallelism', 'maxParallel', 'maxConcurrency'),
  ...all(AT_ONCE, 'maxInFlight', 'workers', 'prefetch'),
  ...all(BATCH, 'batchSize', 'maxBatchSize', 'maxRecords', 'batchOptions', 'linger', 'lingerMs'),
  ...all(BATCH_HANDLER, 'eachBatch', 'onBatch', 'handleBatch', 'batchListener'),
  ...all(FETCHES, 'maxBytes', 'minBytes', 'maxBytesPerPartition', 'maxWaitTimeInMs'),
  ...all(HANDLER, 'eachMessage', 'eachRecord', 'onMessage', 'onRecord', 'process', 'processor', 'consume', 'run'),
  frombeginning: "startFrom takes 'earliest' (as it is by itself), 'latest' or a Date",
  autooffsetreset: "startFrom takes 'earliest' (as it is by itself), 'latest' or a Date",
  autocommitinterval: 'commitInterval says how often offsets are committed',
  group: 'groupId names the group',
  consumergroup: 'groupId names the group',
  topics: 'topic takes one topic, or a list of them',
  client: 'kafka takes the client',
  consumer: 'kafka takes the client, which makes the consumer: new Kafka({ brokers })',
  timeout: 'handlerTimeout bounds one attempt, shutdownTimeout the stop',
  ttl: 'deadline bounds all attempts of a record together',
  maxage: 'deadline bounds all attempts of a record together',
  deserializer: "decode takes 'json' or a function, schema a schema",
  deserialize: "decode takes 'json' or a function, schema a schema",
  parse: "decode takes 'json' or a function, schema a schema",
  validate: 'schema takes a schema (zod, valibot, arktype)',
  clock: 'a fake broker of retryline/testing brings its clock along: give it as kafka',
}

function all(text: string, ...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name.toLowerCase(), text]))
}

export function foreignNames(): string[] {
  return Object.keys(INSTEAD)
}

/** By which option of ours a foreign one is met, as the end of a problem; undefined for a name that nobody knows. */
export function insteadOf(name: string): string | undefined {
  const key = name.toLowerCase()
  return Object.hasOwn(INSTEAD, key) ? INSTEAD[key] : undefined
}
