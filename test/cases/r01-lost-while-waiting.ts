/**
 * R01: lost in the wait until it is due.
 * Given a retry topic on which the first record is due later, and the two behind it are due already.
 * When its consumer reads them, waits, and its process dies in the wait.
 * Then nothing at or above the waiting record is committed before it was handled, it is handled once and not early, and
 * so are the two behind it: by the next process, if this one is gone.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import type { Scene } from '../contract/scene'
import { putOnTier } from './on-tier'

const THREE = [
  { value: 'later', dueIn: 1_500 },
  { value: 'now 1', dueIn: 0 },
  { value: 'now 2', dueIn: 0 },
]
const ORDERINGS = ['partition', 'key', 'unordered'] as const

export function r01(given: Given): void {
  const committedOnTier = async (scene: Scene, partition: number): Promise<bigint> =>
    (await scene.committed(scene.retry('2s'), scene.retryGroup('2s'))).get(partition) ?? -1n

  /** A record on the other partition is handled and committed: what may be committed of the first one is, by then. */
  async function witness(scene: Scene): Promise<void> {
    const offset = await putOnTier(scene, '2s', [{ value: 'witness', dueIn: 0 }], 1)
    await given.stage().until(async () => (await committedOnTier(scene, 1)) > offset, 'the witness is committed')
  }

  const ofPartition0 = (scene: Scene) => scene.calls.filter(({ partition }) => partition === 0)

  it.each(ORDERINGS)('R01 P1 P2: it is committed only once it was handled, and once due (%s)', async (ordering) => {
    const scene = await given.scene({ partitions: 2, schedule: ['2s'] })
    const gate = scene.gate()
    await putOnTier(scene, '2s', THREE)
    await scene.join(({ value }) => value === 'later' && gate.wait(), { ordering })
    await witness(scene)
    expect(await committedOnTier(scene, 0)).toBeLessThanOrEqual(0n)
    expect(ofPartition0(scene).filter(({ value }) => value === 'later')).toEqual([])
    await scene.untilCalls(1, ({ value }) => value === 'later')
    await witness(scene)
    expect(await committedOnTier(scene, 0), 'while its handler runs').toBeLessThanOrEqual(0n)
    gate.open()
    await scene.untilDone()
    const values = ofPartition0(scene).map(({ value }) => value)
    expect(values.sort()).toEqual(['later', 'now 1', 'now 2'])
    scene.expectNeverEarly()
  })

  it('R01 P1: the process dies in the wait, and the next one handles it when it is due', async () => {
    const scene = await given.scene({ partitions: 2, schedule: ['2s'] })
    await putOnTier(scene, '2s', THREE)
    const first = await scene.join(undefined, { ordering: 'unordered' })
    await scene.untilCalls(2)
    await witness(scene)
    expect(await committedOnTier(scene, 0)).toBeLessThanOrEqual(0n)
    await given.stage().during(first.faults.kill())
    await scene.join(undefined, { ordering: 'unordered' })
    await scene.untilDone()
    // The dead one's timers run on in this process, and nothing of theirs reaches the broker.
    const later = scene.calls.filter(({ member, value }) => member === 1 && value === 'later')
    expect(later.map(({ attempt }) => attempt)).toEqual([2])
    scene.expectNeverEarly()
  })
}
