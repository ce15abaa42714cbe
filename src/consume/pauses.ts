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
export function createPauses(emitter: Emitter, resumed: () => void): Pauses {
  const topics = new Set<string>()
  let all = false
  return {
    pause(target) {
      if (target?.topic === undefined) all = true
      else topics.add(target.topic)
      emitter.emit('paused', { by: 'user', ...(target?.topic !== undefined && { topic: target.topic }) })
    },
    resume(target) {
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
