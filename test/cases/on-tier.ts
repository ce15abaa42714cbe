import type { Scene } from '../contract/scene'
import type { WireRecord } from '../contract/stage'

export interface Waiting {
  readonly value: string
  /** ms from now on; may be negative. */
  readonly dueIn: number
  readonly key?: string
}

/** Records on a retry topic as if they had failed once on the main topic, each with a due time of its own. */
export async function putOnTier(
  scene: Scene,
  delay: string,
  waiting: readonly Waiting[],
  partition = 0,
): Promise<bigint> {
  const now = scene.stage.now()
  const records = waiting.map(({ value, dueIn, key = null }, i): WireRecord => ({
    key,
    value,
    headers: [
      ['x-attempt', '2'],
      ['x-due-at', String(now + dueIn)],
      ['x-original-topic', scene.topic],
      ['x-original-partition', String(partition)],
      ['x-original-offset', String(i)],
      ['x-original-timestamp', String(now)],
      ['x-consumer-group', scene.group],
    ],
  }))
  return scene.stage.produce(scene.retry(delay), partition, records)
}
