import { EventEmitter } from 'node:events'
import type { InnerClock } from './clock'
import { KafkaJSNonRetriableError } from './errors'

export interface InstrumentationEvent {
  id: number
  type: string
  timestamp: number
  payload: unknown
}

type Listener = (event: InstrumentationEvent) => unknown

/** Event names of kafkajs, by client. The network events exist by name and are never emitted (see NOT-FAKED.md). */
export const CONSUMER_EVENTS = {
  HEARTBEAT: 'consumer.heartbeat',
  COMMIT_OFFSETS: 'consumer.commit_offsets',
  GROUP_JOIN: 'consumer.group_join',
  FETCH: 'consumer.fetch',
  FETCH_START: 'consumer.fetch_start',
  START_BATCH_PROCESS: 'consumer.start_batch_process',
  END_BATCH_PROCESS: 'consumer.end_batch_process',
  CONNECT: 'consumer.connect',
  DISCONNECT: 'consumer.disconnect',
  STOP: 'consumer.stop',
  CRASH: 'consumer.crash',
  REBALANCING: 'consumer.rebalancing',
  RECEIVED_UNSUBSCRIBED_TOPICS: 'consumer.received_unsubscribed_topics',
  REQUEST: 'consumer.network.request',
  REQUEST_TIMEOUT: 'consumer.network.request_timeout',
  REQUEST_QUEUE_SIZE: 'consumer.network.request_queue_size',
} as const

export const PRODUCER_EVENTS = {
  CONNECT: 'producer.connect',
  DISCONNECT: 'producer.disconnect',
  REQUEST: 'producer.network.request',
  REQUEST_TIMEOUT: 'producer.network.request_timeout',
  REQUEST_QUEUE_SIZE: 'producer.network.request_queue_size',
} as const

export const ADMIN_EVENTS = {
  CONNECT: 'admin.connect',
  DISCONNECT: 'admin.disconnect',
  REQUEST: 'admin.network.request',
  REQUEST_TIMEOUT: 'admin.network.request_timeout',
  REQUEST_QUEUE_SIZE: 'admin.network.request_queue_size',
} as const

export type On = (eventName: string, listener: (event: never) => unknown) => () => void

/**
 * Listeners run synchronously inside `emit`. One that throws throws out of `emit`, into whatever kafkajs was doing
 * (after a join: its death); one that rejects is only logged.
 */
export class Instrumentation {
  private readonly emitter = new EventEmitter().setMaxListeners(0)
  private id = 0

  constructor(
    private readonly clock: InnerClock,
    private readonly client: 'consumer' | 'producer' | 'admin',
    private readonly names: Readonly<Record<string, string>>,
  ) {}

  emit(type: string, payload?: unknown): void {
    if (this.emitter.listenerCount(type) === 0) return
    const event: InstrumentationEvent = { id: this.id++, type, timestamp: this.clock.now(), payload }
    this.emitter.emit(type, event)
  }

  readonly on: On = (eventName, listener) => {
    if (!Object.values(this.names).includes(eventName)) {
      const keys = Object.keys(this.names).map((key) => `${this.client}.events.${key}`)
      throw new KafkaJSNonRetriableError(`Event name should be one of ${keys.join(', ')}`)
    }
    const call = (event: InstrumentationEvent): void => {
      Promise.resolve((listener as Listener)(event)).catch(() => undefined)
    }
    this.emitter.addListener(eventName, call)
    return () => void this.emitter.removeListener(eventName, call)
  }
}
