import { show } from '../config'
import { RetrylineError } from '../errors'
import { fromKafkaHeaders, type Header, type OutgoingMessage } from '../record'

export interface Staged {
  readonly topic: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
  readonly partition: number | undefined
}

/** A record given to `ctx.send()`, checked: throws one error that names field, value and mend. */
export function checkOutgoing(message: OutgoingMessage): Staged {
  if (typeof message !== 'object' || message === null) throw bad('a message', message, 'give { topic, key, value }')
  const { topic, partition } = message
  if (typeof topic !== 'string' || topic === '') throw bad('topic', topic, 'give the name of a topic')
  if (partition !== undefined && !(Number.isInteger(partition) && partition >= 0)) {
    throw bad('partition', partition, 'give a whole number from 0, or leave it out')
  }
  return {
    topic,
    partition,
    key: bytes('key', message.key ?? null),
    value: bytes('value', message.value),
    headers: fromKafkaHeaders(message.headers as Parameters<typeof fromKafkaHeaders>[0]),
  }
}

function bytes(field: string, value: unknown): Buffer | null {
  if (value === null || Buffer.isBuffer(value)) return value
  if (typeof value === 'string') return Buffer.from(value)
  throw bad(field, value, 'give a Buffer, text or null')
}

function bad(field: string, value: unknown, mend: string): RetrylineError {
  return new RetrylineError('RETRYLINE_PUBLISH', `ctx.send(): ${field} is ${show(value)}; ${mend}`)
}
