import type { Scene } from './scene'
import type { Bytes, WireRecord } from './wire'

/** Headers by name; `{topic}` and `{group}` in a value are the scene's. */
export type Forged = Readonly<Record<string, Bytes>>

/** What a retry of the scene's own looks like. */
export const COMPLETE: Forged = {
  'x-attempt': '2',
  'x-due-at': '0',
  'x-original-topic': '{topic}',
  'x-original-partition': '0',
  'x-original-offset': '0',
  'x-original-timestamp': '1',
  'x-consumer-group': '{group}',
}

export function forgedRecord(scene: Scene, value: string, headers: Forged): WireRecord {
  const filled = Object.entries(headers).map(([name, bytes]): readonly [string, Bytes] => [
    name,
    typeof bytes === 'string' ? bytes.replace('{topic}', scene.topic).replace('{group}', scene.group) : bytes,
  ])
  return { value, headers: filled }
}
