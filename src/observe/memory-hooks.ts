import { EVENT_TYPES } from './events'
import type { EventOf, EventType, MetricHooks, RetrylineEvent } from './events'

export interface MemoryHooks {
  /** The hook itself: `hooks: [memory]` works as it is. */
  readonly all: (event: RetrylineEvent) => void
  /** How many events of each type since the start or the last `reset()`. */
  readonly counts: Readonly<Record<EventType, number>>
  /** The latest events, oldest first; all types together, or those of one. */
  events(): readonly RetrylineEvent[]
  events<E extends EventType>(type: E): readonly EventOf<E>[]
  reset(): void
}

/**
 * Hooks that remember: for tests, and for a health page. At most `keep` events of each type are held (default 1000),
 * so that a busy consumer's successes never push out its one crash.
 */
export function memoryHooks(options: { readonly keep?: number } = {}): MemoryHooks & MetricHooks {
  const keep = Math.max(1, Math.floor(options.keep ?? 1000))
  const zero = (): Record<EventType, number> =>
    Object.fromEntries(EVENT_TYPES.map((type) => [type, 0])) as Record<EventType, number>
  const counts = zero()
  // Each type's events lie in a ring, numbered over all types, so that they can be put in order again.
  let rings = new Map<EventType, { order: number; event: RetrylineEvent }[]>()
  let order = 0

  const entries = (type: EventType): { order: number; event: RetrylineEvent }[] =>
    [...(rings.get(type) ?? [])].sort((a, b) => a.order - b.order)

  function events(): readonly RetrylineEvent[]
  function events<E extends EventType>(type: E): readonly EventOf<E>[]
  function events(type?: EventType): readonly RetrylineEvent[] {
    const chosen = type ? entries(type) : EVENT_TYPES.flatMap(entries).sort((a, b) => a.order - b.order)
    return chosen.map(({ event }) => event)
  }

  return {
    counts,
    events,
    all(event) {
      const ring = rings.get(event.type) ?? []
      rings.set(event.type, ring)
      ring[counts[event.type] % keep] = { order: order++, event }
      counts[event.type]++
    },
    reset() {
      Object.assign(counts, zero())
      rings = new Map()
      order = 0
    },
  }
}
