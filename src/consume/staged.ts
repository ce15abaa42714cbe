import { show } from '../config'
import { RetrylineError } from '../errors'
import { fromKafkaHeaders, type Header, type KafkaHeaders, type OutgoingMessage } from '../record'
import { topicProblem } from '../topology'

export interface Staged {
  readonly topic: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
  readonly partition: number | undefined
}

/**
 * What is given to `ctx.send()`, checked and as it is now: what is done to a message or its headers later changes nothing. Throws
 * one error that names field, value and mend; then none of them is sent.
 */
export function checkAllOutgoing(messages: OutgoingMessage | readonly OutgoingMessage[]): Staged[] {
  const list = Array.isArray(messages) ? (messages as readonly OutgoingMessage[]) : [messages as OutgoingMessage]
  // Not `map`, which leaves out the holes of a list.
  return Array.from(list, checkOutgoing)
}

/** As checkAllOutgoing, for one. */
export function checkOutgoing(message: OutgoingMessage): Staged {
  if (typeof message !== 'object' || message === null) throw bad('a message', message, 'give { topic, key, value }')
  const { topic, partition } = message
  if (typeof topic !== 'string' || topic === '') throw bad('topic', topic, 'give the name of a topic')
  const problem = topicProblem(topic)
  if (problem !== undefined)
    throw new RetrylineError('RETRYLINE_PUBLISH', `ctx.send(): topic ${show(topic)} ${problem}`)
  if (partition !== undefined && !(Number.isInteger(partition) && partition >= 0)) {
    throw bad('partition', partition, 'give a whole number from 0, or leave it out')
  }
  return {
    topic,
    partition,
    key: bytes('key', message.key ?? null),
    value: bytes('value', message.value),
    headers: headersOf(message.headers),
  }
}

function bytes(field: string, value: unknown): Buffer | null {
  if (value === null || Buffer.isBuffer(value)) return value
  if (typeof value === 'string') return Buffer.from(value)
  throw bad(field, value, 'give a Buffer, text or null')
}

/** Takes what kafkajs takes, and what it hands out: handlers pass the headers of their message on. */
function headersOf(headers: unknown): Header[] {
  if (headers === undefined || headers === null) return []
  if (typeof headers !== 'object' || Array.isArray(headers) || headers instanceof Map) {
    throw bad('headers', headers, 'give a plain object, { name: value }')
  }
  const now: KafkaHeaders = { ...headers }
  for (const [name, value] of Object.entries(now)) {
    const isList = Array.isArray(value)
    for (const [i, one] of (isList ? value : [value]).entries()) {
      if (one === undefined || one === null || typeof one === 'string' || ArrayBuffer.isView(one)) continue
      // kafkajs puts what every object inherits in front of a header of that name.
      if (isList && i === 0 && one === (PLAIN as Record<string, unknown>)[name]) continue
      throw bad(`headers[${show(name)}]`, one, 'give a Buffer or text, or a list of these')
    }
  }
  return fromKafkaHeaders(now)
}

const PLAIN = {}

function bad(field: string, value: unknown, mend: string): RetrylineError {
  return new RetrylineError('RETRYLINE_PUBLISH', `ctx.send(): ${field} is ${show(value)}; ${mend}`)
}
