import type { TopicPartitions, TopicSelection } from './types'

interface TopicState {
  paused: Set<number>
  all: boolean
  resumed: Set<number>
}

/**
 * What a consumer is assigned, and what of it is paused. The two have different lives, as in kafkajs: an assignment is
 * replaced by the next, a pause stands until a resume, also while its partition is away.
 */
export class SubscriptionState {
  private assignment = new Map<string, number[]>()
  private readonly states = new Map<string, TopicState>()

  assign(assignment: readonly TopicPartitions[]): void {
    this.assignment = new Map(assignment.map(({ topic, partitions }) => [topic, partitions]))
  }

  pause(selection: readonly TopicSelection[]): void {
    for (const { topic, partitions } of selection) {
      const state = this.stateOf(topic)
      if (partitions === undefined) {
        state.paused.clear()
        state.resumed.clear()
        state.all = true
        continue
      }
      for (const partition of partitions) {
        state.paused.add(partition)
        state.resumed.delete(partition)
      }
      // kafkajs again: pausing single partitions ends a pause of the whole topic.
      state.all = false
    }
  }

  resume(selection: readonly TopicSelection[]): void {
    for (const { topic, partitions } of selection) {
      const state = this.stateOf(topic)
      if (partitions === undefined) {
        state.paused.clear()
        state.resumed.clear()
        state.all = false
        continue
      }
      for (const partition of partitions) {
        state.paused.delete(partition)
        if (state.all) state.resumed.add(partition)
      }
    }
  }

  isPaused(topic: string, partition: number): boolean {
    const state = this.states.get(topic)
    return state !== undefined && ((state.all && !state.resumed.has(partition)) || state.paused.has(partition))
  }

  assigned(): TopicPartitions[] {
    return this.select(() => true)
  }

  active(): TopicPartitions[] {
    return this.select((topic, partition) => !this.isPaused(topic, partition))
  }

  /** Only what is assigned now: a pause of a partition that is away is not seen here, and still stands. */
  paused(): TopicPartitions[] {
    return this.select((topic, partition) => this.isPaused(topic, partition)).filter((t) => t.partitions.length > 0)
  }

  private select(which: (topic: string, partition: number) => boolean): TopicPartitions[] {
    return [...this.assignment].map(([topic, partitions]) => ({
      topic,
      // Sorted as text, as kafkajs does: 10 stands before 2.
      partitions: partitions.filter((partition) => which(topic, partition)).sort(asText),
    }))
  }

  private stateOf(topic: string): TopicState {
    const state = this.states.get(topic) ?? { paused: new Set(), all: false, resumed: new Set() }
    this.states.set(topic, state)
    return state
  }
}

const asText = (a: number, b: number): number => (String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0)
