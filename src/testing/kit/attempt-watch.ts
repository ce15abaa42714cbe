/** What happens to the one record of `attempt()`: told by the engine's own events, and by a handler that notes its calls. */
import { RetrylineError } from '../../errors'
import type { EventOf, MetricHooks } from '../../observe'
import type { Handler, HandlerContext, OutgoingMessage } from '../../record'
import type { Topology } from '../../topology'
import type { InnerClock } from '../clock'
import type { FakeKafka } from '../create-fake-kafka'
import { insideOf } from '../inside'

export interface Watched {
  /**
   * What becomes of the record. `again`: the handler paused its partition and threw, so it comes again, and no attempt is
   * counted. `held`: a dependency is down, so it waits, uncommitted. `skipped`: its headers say that it is another group's.
   */
  readonly outcome: 'succeeded' | 'retry' | 'dead-letter' | 'held' | 'again' | 'skipped'
  /** How often the handler was called: 0 for what cannot be decoded, more than 1 for quick tries. */
  readonly calls: number
  /** `retry`: the tier that it would wait in (`10m`), and for how long, ms, jitter included. */
  readonly tier?: string
  readonly delayMs?: number
  /** `retry` and `dead-letter`: the topic that it would go to. */
  readonly to?: string
  /** `dead-letter`: why it is given up, as `x-failure-reason` says. */
  readonly reason?: string
  /** `retry` and `dead-letter`: the classifier's reason; class and message of the error. */
  readonly because?: string
  readonly error?: string
  /** What the handler threw at its last call, itself. */
  readonly thrown?: unknown
  /** The handler ran longer than `handlerTimeout`. */
  readonly timedOut: boolean
  /** It had not settled a second after that, and was left to itself. */
  readonly abandoned: boolean
  /** What went wrong beside the handler and was contained: a classifier or a hook that threw, headers out of bounds. */
  readonly problems: readonly string[]
}

export interface AttemptWatch {
  readonly hooks: MetricHooks
  wrap(handler: Handler): Handler
  isOver(): boolean
  /** Throws RETRYLINE_TESTING where nothing was decided about the record. */
  result(topology: Topology): Watched
}

export function watchAttempt(kafka: FakeKafka, clock: InnerClock, pause: () => void): AttemptWatch {
  let calls = 0
  let thrown: { error: unknown } | undefined
  let ended: EventOf<'attempt'> | undefined
  let retried: (EventOf<'retried'> & { delayMs: number }) | undefined
  let dead: EventOf<'deadLettered'> | undefined
  let held: EventOf<'held'> | undefined
  let skipped = false
  let abandoned = false
  const problems: string[] = []

  const hooks: MetricHooks = {
    attempt: (event) => void (ended = event),
    retried: (event) => void (retried = { ...event, delayMs: event.dueAt - clock.now() }),
    deadLettered: (event) => void (dead = event),
    // Of a decoder that finds it down no attempt is told.
    held: (event) => void (held = event),
    skipped: () => void (skipped = true),
    abandoned: () => void (abandoned = true),
    problem: ({ where, error }) => void problems.push(`${where}: ${error}`),
    envelope: (event) => void problems.push(...event.problems),
  }
  const isOver = (): boolean =>
    retried !== undefined ||
    dead !== undefined ||
    skipped ||
    ended?.outcome === 'ok' ||
    held !== undefined ||
    isAgain(ended)

  return {
    hooks,
    isOver,
    wrap: (handler) => (payload, context) => {
      calls++
      // What the handler sends to its own topic is not handled here.
      if (calls === 1) pause()
      thrown = undefined
      makeTopicsFor(context, kafka)
      const failed = (error: unknown): never => {
        thrown = { error }
        throw error
      }
      try {
        const result = handler(payload, context)
        return isThenable(result) ? result.then(undefined, failed) : result
      } catch (error) {
        return failed(error)
      }
    },
    result(topology) {
      const common = {
        calls,
        ...(thrown === undefined ? {} : { thrown: thrown.error }),
        timedOut: abandoned || ended?.outcome === 'timeout',
        abandoned,
        problems,
      }
      if (dead !== undefined) {
        const { to, reason, because, error } = dead
        return { outcome: 'dead-letter', to, reason, because, error, ...common }
      }
      if (retried !== undefined) {
        const { to, delayMs, because, error } = retried
        return { outcome: 'retry', tier: topology.origin(to)?.tier.name ?? '', delayMs, to, because, error, ...common }
      }
      if (skipped) return { outcome: 'skipped', ...common }
      if (held !== undefined) return { outcome: 'held', because: held.because, ...common }
      if (isAgain(ended)) return { outcome: 'again', ...common }
      if (ended?.outcome === 'ok') return { outcome: 'succeeded', ...common }
      const waits = clock.parked()
      throw new RetrylineError(
        'RETRYLINE_TESTING',
        `attempt(): nothing was decided about the record, and nothing will be: ${[...problems, ...waits].join('; ') || 'no timer is left'}`,
      )
    },
  }
}

/** Between quick tries an attempt is told as `again` too, and goes on; a pause that was not ended leaves it where it is. */
const isAgain = (ended: EventOf<'attempt'> | undefined): boolean =>
  ended?.outcome === 'again' && ended.errorClass === undefined

const isThenable = (value: unknown): value is Promise<unknown> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === 'function'

/** Topics that the handler sends to are there, with the partitions it names: what they are is not what is tested. */
function makeTopicsFor(context: HandlerContext, kafka: FakeKafka): void {
  const { send } = context
  const { topics } = insideOf(kafka, 'attempt()').broker
  Object.defineProperty(context, 'send', {
    configurable: true,
    writable: true,
    value(this: HandlerContext, messages: OutgoingMessage | readonly OutgoingMessage[]): void {
      send.call(this, messages)
      for (const message of [messages].flat() as readonly (Partial<OutgoingMessage> | null | undefined)[]) {
        const { topic, partition = 0 } = message ?? {}
        // Anything else is for the engine's own check.
        if (typeof topic !== 'string' || !/^[\w.-]{1,249}$/.test(topic) || !(partition >= 0 && partition < 10_000))
          continue
        const found = topics.find(topic)
        if (found === undefined) kafka.createTopic(topic, { partitions: partition + 1 })
        else if (found.partitions.length <= partition) topics.grow(topic, partition + 1)
      }
    },
  })
}
