/** One row for each option that can be checked by itself; what needs two of them together is in `resolve.ts`. */
import { z } from 'zod'
import { EVENT_TYPES } from '../observe'
import type { MetricHooks } from '../observe'
import type { Logger } from '../ports'
import type { BatchHandler, Handler } from '../record'
import { topicProblem } from '../topology'
import type { CustomNaming } from '../topology'
import { anyThat, duration, hasFunctions, oneOf, share, size, text, whole } from './checks'
import type { Decode } from './decode-types'
import { hookProblem } from './hook-problem'
import type { KafkaClient, ResilientConsumerOptions } from './options'
import type { StandardSchema } from './standard-schema'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const KIB = 1024

const MAKERS = ['consumer', 'producer', 'admin']
const LEVELS = ['debug', 'info', 'warn', 'error']

const topicName = z.unknown().transform((value, ctx) => {
  const problem = topicProblem(value)
  if (problem === undefined) return value as string
  ctx.addIssue({ code: 'custom', message: problem })
  return z.NEVER
})

const topics = z.unknown().transform((value, ctx): string[] => {
  const list = Array.isArray(value) ? (value as unknown[]) : [value]
  if (list.length === 0) ctx.addIssue({ code: 'custom', message: 'names no topic; give a topic, or a list of them' })
  for (const [i, each] of list.entries()) {
    const path = Array.isArray(value) ? [i] : []
    const checked = topicName.safeParse(each)
    if (!checked.success) ctx.addIssue({ code: 'custom', path, message: checked.error.issues[0]?.message ?? '' })
    else if (list.indexOf(each) < i) ctx.addIssue({ code: 'custom', path, message: 'is named twice; name it once' })
  }
  return list as string[]
})

const hooks = z.unknown().transform((value, ctx): MetricHooks[] => {
  const list = Array.isArray(value) ? (value as unknown[]) : [value]
  for (const [i, each] of list.entries()) {
    const message = hookProblem(each, [...EVENT_TYPES, 'all'])
    if (message !== undefined) ctx.addIssue({ code: 'custom', path: Array.isArray(value) ? [i] : [], message })
  }
  return list as MetricHooks[]
})

/** Read later, by the stages that know them (`topology`, `classify`). */
const elsewhere = z.unknown()

export const FIELDS = {
  kafka: anyThat<KafkaClient>(
    (value) => hasFunctions(value, MAKERS),
    'has no .consumer(), .producer() and .admin(); give a kafkajs client (new Kafka({ brokers })), or a fake one',
  ),
  groupId: text('a group', 255),
  topic: topics,
  schedule: elsewhere,
  handler: anyThat<Handler>(
    (value) => typeof value === 'function',
    'is not a function; give an eachMessage handler: async ({ topic, partition, message }, ctx) => { … }',
  ).optional(),
  batchHandler: anyThat<BatchHandler>(
    (value) => typeof value === 'function',
    'is not a function; give a handler of many records: async ({ messages }, ctx) => { … }',
  ).optional(),
  batch: z
    .strictObject(
      {
        maxRecords: whole(1, 10_000).default(100),
        maxBytes: size(KIB, KIB ** 3).default(KIB ** 2),
        linger: duration(1, MINUTE, true).default(0),
      },
      { error: "is not understood; give { maxRecords: 100, maxBytes: '1MiB', linger: '10ms' }, or some of these" },
    )
    .optional(),
  classify: elsewhere,
  unknownErrors: oneOf('dead-letter', 'retry').default('dead-letter'),
  ordering: oneOf('partition', 'key', 'unordered').default('partition'),
  concurrency: whole(1, 1000).default(16),
  immediate: z
    .strictObject(
      { tries: whole(1, 5), delay: duration(1, 5 * SECOND, true) },
      { error: "is not understood; give { tries: 2, delay: '100ms' } and nothing else" },
    )
    .optional(),
  startFrom: anyThat<'earliest' | 'latest' | Date>(
    (value) => value === 'earliest' || value === 'latest' || (value instanceof Date && value.getTime() >= 0),
    "is not a place to start; give 'earliest', 'latest' or a valid Date",
  ).default('earliest'),
  handlerTimeout: duration(10, DAY).default(30 * SECOND),
  shutdownTimeout: duration(1, HOUR, true).default(20 * SECOND),
  publishTimeout: duration(SECOND, HOUR).default(3 * MINUTE),
  delivery: oneOf('at-least-once', 'exactly-once').default('at-least-once'),
  commitInterval: duration(10, MINUTE).default(200),
  deadline: duration(1, 365 * DAY).optional(),
  outage: z
    .strictObject(
      {
        failures: whole(1, 1000).default(5),
        within: duration(100, HOUR).default(10 * SECOND),
        probe: duration(10, HOUR).default(SECOND),
        maxProbe: duration(10, HOUR).default(30 * SECOND),
      },
      {
        error: "is not understood; give { failures: 5, within: '10s', probe: '1s', maxProbe: '30s' }, or some of these",
      },
    )
    .prefault({}),
  deadLetterLimit: z
    .strictObject(
      { share: share(), burst: whole(1, 1_000_000), within: duration(SECOND, DAY).default(MINUTE) },
      { error: "is not understood; give { share: 0.5, burst: 100, within: '1m' } and nothing else" },
    )
    .optional(),
  crashLimit: z
    .union([z.literal(false), z.int().min(2).max(100)], {
      error: 'is not a limit; give a whole number from 2 to 100, or false',
    })
    .default(3),
  topicSetup: oneOf('verify', 'create', 'warn').default('verify'),
  sameGroupInProcess: oneOf('refuse', 'allow').default('refuse'),
  topicNames: anyThat<'by-topic' | 'by-topic-and-group' | CustomNaming>(
    (value) => value === 'by-topic' || value === 'by-topic-and-group' || hasFunctions(value, ['retry', 'deadLetter']),
    "is not a way to name topics; give 'by-topic', 'by-topic-and-group' or { retry(topic, delay, groupId), deadLetter(topic, groupId) }",
  ).default('by-topic'),
  formerGroupIds: z.array(text('a group', 255), { error: 'is not a list; give a list of group names' }).default([]),
  formerTiers: z
    .array(duration(1, 365 * DAY), { error: "is not a list; give a list of durations such as ['5m']" })
    .default([]),
  release: text('a release', 128).optional(),
  hooks: hooks.default([]),
  logger: anyThat<Logger>(
    (value) => hasFunctions(value, LEVELS),
    'has not all of .debug(), .info(), .warn() and .error(); give a logger, or silentLogger',
  ).optional(),
  sessionTimeout: duration(SECOND, 30 * MINUTE).default(30 * SECOND),
  heartbeatInterval: duration(100, 10 * MINUTE).default(3 * SECOND),
  rebalanceTimeout: duration(SECOND, 30 * MINUTE).default(MINUTE),
  maxBufferedBytes: size(KIB, 64 * KIB ** 3).optional(),
  maxBufferedRecords: whole(1, 1_000_000).default(50_000),
  allowManyAttempts: z.boolean({ error: 'is not a yes or no; give true, or leave it out' }).default(false),
  decode: anyThat<'json' | Decode>(
    (value) => value === 'json' || typeof value === 'function',
    "is not a way to decode; give 'json' or a function (value, info) => …",
  ).optional(),
  schema: anyThat<StandardSchema>(
    isSchema,
    'is not a Standard Schema (version 1); give a schema of zod, valibot, arktype or the like',
  ).optional(),
} satisfies Record<keyof ResilientConsumerOptions, z.ZodType>

export type Field = keyof typeof FIELDS
export type Checked = { [F in Field]: z.output<(typeof FIELDS)[F]> }

function isSchema(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as Partial<StandardSchema>)['~standard']
  return standard?.version === 1 && typeof standard.validate === 'function'
}
