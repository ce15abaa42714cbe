/** Members with a batch handler in a scene, and a note of every call. */
import type { BatchContext, BatchMessage, MessageBatch } from '../../src'
import type { Member, Scene } from './scene'

export interface BatchSeen {
  readonly member: number
  readonly topic: string
  readonly partition: number
  readonly messages: readonly BatchMessage[]
  readonly values: readonly string[]
  readonly ctx: BatchContext
  readonly batch: MessageBatch
  readonly startedAt: number
  ended: boolean
}

export class Batching {
  readonly seen: BatchSeen[] = []
  /** Every start and end, in order. */
  readonly log: (readonly [BatchSeen, 1 | -1])[] = []

  constructor(readonly scene: Scene) {}

  member(act: (call: BatchSeen) => unknown = () => undefined, options: Record<string, unknown> = {}): Member {
    const member = this.scene.members.length
    return this.scene.member(undefined, {
      handler: undefined,
      batchHandler: async (batch: MessageBatch, ctx: BatchContext): Promise<void> => {
        const { messages } = batch
        const values = messages.map(({ value }) => String(value))
        const startedAt = this.scene.stage.now()
        const call = { member, ...ctx.source, messages, values, ctx, batch, startedAt, ended: false }
        this.seen.push(call)
        this.log.push([call, 1])
        try {
          await act(call)
        } finally {
          call.ended = true
          this.log.push([call, -1])
        }
      },
      ...options,
    })
  }

  async join(act?: (call: BatchSeen) => unknown, options?: Record<string, unknown>): Promise<Member> {
    const member = this.member(act, options)
    await this.scene.stage.during(member.consumer.start())
    return member
  }

  /** Values given to handlers, in order; where it is given, on that topic only. */
  values(topic?: string): string[] {
    return this.seen.filter((call) => topic === undefined || call.topic === topic).flatMap(({ values }) => values)
  }

  sizes(topic = this.scene.topic): number[] {
    return this.seen.filter((call) => call.topic === topic).map(({ values }) => values.length)
  }

  untilCalls(count: number): Promise<void> {
    return this.scene.stage.until(
      () => this.seen.length >= count,
      () => `${count} calls: there were ${this.sizes().join()} on the main topic, ${this.seen.length} in all`,
    )
  }
}

/** The message with this value. */
export const named = ({ messages }: Pick<BatchSeen, 'messages'>, value: string): BatchMessage | undefined =>
  messages.find((message) => String(message.value) === value)

/** The most of these calls that were under way at once. */
export function mostTogether(log: Batching['log'], keysOf: (call: BatchSeen) => readonly string[]): number {
  const now = new Map<string, number>()
  let most = 0
  for (const [call, step] of log) {
    for (const key of new Set(keysOf(call))) {
      now.set(key, (now.get(key) ?? 0) + step)
      most = Math.max(most, now.get(key)!)
    }
  }
  return most
}
