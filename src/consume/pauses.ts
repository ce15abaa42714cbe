import { show } from '../config'
import { RetrylineError } from '../errors'
import type { Emitter } from '../observe'

export interface PauseTarget {
  /** A main topic; its retries are meant too. All topics where absent. */
  readonly topic?: string
}

export interface Pauses {
  pause(target?: PauseTarget): void
  resume(target?: PauseTarget): void
  readonly isPaused: (main: string) => boolean
  any(): boolean
}

/** What the user has paused. It outlives rebalances and crashes: only `resume()` ends it. */
export function createPauses(emitter: Emitter, known: readonly string[], resumed: () => void): Pauses {
  const topics = new Set<string>()
  let all = false

  /** Throws where it is not understood: a pause that pauses something else than was meant is an incident of its own. */
  function check(what: string, target: PauseTarget | undefined): void {
    if (target === undefined) return
    const topic: unknown = typeof target === 'object' && target !== null ? target.topic : target
    if (typeof target === 'object' && target !== null && topic === undefined) return
    if (typeof target === 'object' && target !== null && known.includes(topic as string)) return
    throw new RetrylineError(
      'RETRYLINE_STATE',
      `${what}(): ${show(topic)} is not a main topic of this consumer; give { topic } with one of ${known.join(', ')} ` +
        '(its retries are meant too), or nothing for all',
    )
  }

  return {
    pause(target) {
      check('pause', target)
      if (target?.topic === undefined) all = true
      else topics.add(target.topic)
      emitter.emit('paused', { by: 'user', ...(target?.topic !== undefined && { topic: target.topic }) })
    },
    resume(target) {
      check('resume', target)
      if (target?.topic === undefined) {
        all = false
        topics.clear()
      } else topics.delete(target.topic)
      emitter.emit('resumed', { by: 'user', ...(target?.topic !== undefined && { topic: target.topic }) })
      resumed()
    },
    isPaused: (main) => all || topics.has(main),
    any: () => all || topics.size > 0,
  }
}
