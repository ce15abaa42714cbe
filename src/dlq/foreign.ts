/**
 * Dead letters that others wrote. Each way of writing them down is a reader that answers for its own and says `undefined`
 * to all else. Their headers are untrusted input, as ours are: what cannot be read is not there, and nothing throws.
 */
import { firstHeader, lastHeader, type Header, type Rec } from '../record'
import { memberText } from './json-member'
import type { Death, Original } from './original'

export type ForeignFormat = 'spring' | 'connect' | 'share-group' | 'smallrye' | 'kafkajs-async-retry' | 'json-body'

export interface Foreign extends Death {
  readonly format: ForeignFormat
  readonly original: Original
}

/** The reader of a format; the first that knows the record answers. */
type Reader = (rec: Rec) => Foreign | undefined

/** Undefined where the record is in no format of these. */
export function readForeign(rec: Rec): Foreign | undefined {
  for (const read of READERS) {
    const found = read(rec)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * Spring Kafka's `DeadLetterPublishingRecoverer`: numbers as big-endian bytes. Where a record died more than once its
 * first origin stays in front, and the newest exception stands behind.
 */
const spring: Reader = (rec) => {
  const first = (name: string): Buffer | null | undefined => firstHeader(rec.headers, `kafka_dlt-${name}`)
  const topic = text(first('original-topic'))
  if (topic === undefined) return undefined
  const last = (name: string): string | undefined =>
    textOf(rec, `kafka_dlt-${name}`) ?? textOf(rec, `kafka_dlt-key-${name}`)
  return {
    format: 'spring',
    original: {
      ...without(rec, (name) => /^(kafka_dlt-|retry_topic-|springDeserializerException)/.test(name)),
      topic,
      partition: int(first('original-partition')),
      offset: long(first('original-offset')),
      timestamp: asNumber(long(first('original-timestamp'))),
    },
    group: text(first('original-consumer-group')),
    // The outer one is Spring's own, around whatever the listener threw.
    errorClass: last('exception-cause-fqcn') ?? last('exception-fqcn'),
    error: last('exception-message'),
    stack: last('exception-stacktrace'),
    attempt: int(lastHeader(rec.headers, 'retry_topic-attempts')),
  }
}

/** Kafka Connect, with `errors.deadletterqueue.context.headers.enable`. */
const connect: Reader = (rec) => {
  const get = (name: string): string | undefined => textOf(rec, `__connect.errors.${name}`)
  const topic = get('topic')
  if (topic === undefined) return undefined
  return {
    format: 'connect',
    original: {
      ...without(rec, (name) => name.startsWith('__connect.errors.')),
      topic,
      partition: small(get('partition')),
      offset: whole(get('offset')),
      timestamp: undefined,
    },
    group: get('connector.name'),
    errorClass: get('exception.class.name'),
    error: get('exception.message'),
    stack: get('exception.stacktrace'),
    attempt: undefined,
  }
}

/** A broker's own, of a share group (KIP-1191). */
const shareGroup: Reader = (rec) => {
  const get = (name: string): string | undefined => textOf(rec, `__dlq.errors.${name}`)
  const topic = get('topic')
  if (topic === undefined) return undefined
  return {
    format: 'share-group',
    original: {
      ...without(rec, (name) => name.startsWith('__dlq.errors.')),
      topic,
      partition: small(get('partition')),
      offset: whole(get('offset')),
      timestamp: undefined,
    },
    group: get('group'),
    errorClass: undefined,
    error: get('message'),
    stack: undefined,
    attempt: small(get('delivery.count')),
  }
}

/** SmallRye Reactive Messaging (Quarkus), failure strategy `dead-letter-queue`. */
const smallrye: Reader = (rec) => {
  const get = (name: string): string | undefined => textOf(rec, `dead-letter-${name}`)
  const topic = get('topic')
  if (topic === undefined) return undefined
  const own = /^dead-letter-(reason|cause|topic|partition|offset|exception-class-name|cause-class-name)$/
  return {
    format: 'smallrye',
    original: {
      ...without(rec, (name) => own.test(name)),
      topic,
      partition: small(get('partition')),
      offset: whole(get('offset')),
      timestamp: undefined,
    },
    group: undefined,
    errorClass: get('exception-class-name'),
    error: get('reason'),
    stack: undefined,
    attempt: undefined,
  }
}

/** kafkajs-async-retry writes where a record came from, and no error. One that died at its first attempt bears no sign. */
const asyncRetry: Reader = (rec) => {
  const told = object(textOf(rec, 'asyncRetry'))
  if (told === undefined || typeof told.top !== 'string' || !isCount(told.att)) return undefined
  return {
    format: 'kafkajs-async-retry',
    original: { ...without(rec, (name) => name === 'asyncRetry'), topic: told.top, ...NOWHERE },
    ...NO_DEATH,
    // It counts the attempts before the last.
    attempt: told.att + 1,
  }
}

/** The envelope in the value that many write by hand: `{ originalTopic, payload, error, attemptCount }`. */
const jsonBody: Reader = (rec) => {
  // Only an object is parsed, and only what names the topic: most values are neither.
  if (rec.value === null || rec.value[0] !== OPENING_BRACE || !rec.value.includes('"originalTopic"')) return undefined
  const source = rec.value.toString('utf8')
  // Bytes that are no text would come back as others.
  if (!Buffer.from(source).equals(rec.value)) return undefined
  const told = object(source)
  if (told === undefined || typeof told.originalTopic !== 'string' || !Object.hasOwn(told, 'payload')) return undefined
  const { payload, error } = told
  const value =
    payload === null ? null : Buffer.from(typeof payload === 'string' ? payload : memberText(source, 'payload')!)
  const failure = object(error)
  return {
    format: 'json-body',
    original: { topic: told.originalTopic, ...NOWHERE, key: rec.key, value, headers: rec.headers },
    ...NO_DEATH,
    errorClass: string(failure?.name),
    error: string(error) ?? string(failure?.message),
    stack: string(failure?.stack),
    attempt: isCount(told.attemptCount) ? told.attemptCount : undefined,
  }
}

const READERS: readonly Reader[] = [spring, connect, shareGroup, smallrye, asyncRetry, jsonBody]

const OPENING_BRACE = 0x7b
const NOWHERE = { partition: undefined, offset: undefined, timestamp: undefined }
const NO_DEATH: Death = {
  group: undefined,
  errorClass: undefined,
  error: undefined,
  stack: undefined,
  attempt: undefined,
}

function without({ key, value, headers }: Rec, isTheirs: (name: string) => boolean) {
  return { key, value, headers: headers.filter(([name]): boolean => !isTheirs(name)) satisfies readonly Header[] }
}

function textOf(rec: Rec, name: string): string | undefined {
  return text(lastHeader(rec.headers, name))
}

function text(bytes: Buffer | null | undefined): string | undefined {
  return bytes == null ? undefined : bytes.toString('utf8')
}

function string(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function int(bytes: Buffer | null | undefined): number | undefined {
  return bytes?.length === 4 ? natural(bytes.readInt32BE(0)) : undefined
}

function long(bytes: Buffer | null | undefined): bigint | undefined {
  const value = bytes?.length === 8 ? bytes.readBigInt64BE(0) : undefined
  return value === undefined || value < 0n ? undefined : value
}

/** Decimal text as Kafka's offsets are. */
function whole(digits: string | undefined): bigint | undefined {
  const value = digits !== undefined && /^\d{1,19}$/.test(digits) ? BigInt(digits) : undefined
  return value === undefined || value > MOST_OFFSET ? undefined : value
}

const MOST_OFFSET = 2n ** 63n - 1n

/** Decimal text as Kafka's partitions are. */
function small(digits: string | undefined): number | undefined {
  const value = whole(digits)
  return value === undefined || value > 2n ** 31n - 1n ? undefined : Number(value)
}

function asNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : natural(Number(value))
}

function natural(value: number): number | undefined {
  return isCount(value) ? value : undefined
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** Of JSON text, or what was parsed of it. */
function object(source: unknown): Record<string, unknown> | undefined {
  let value = source
  if (typeof source === 'string') {
    try {
      value = JSON.parse(source)
    } catch {
      return undefined
    }
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}
