/**
 * R18: records from before the first join.
 * Given records on a retry topic whose group has never joined; a tier that a running service did not have before; a group
 * whose offsets are gone; a main topic and a new group.
 * When the consumer starts, whatever `startFrom` says of the main topic.
 * Then the retry topics are read from their beginning, and so is the main topic by default: nothing is skipped.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { RetryableError } from '../../src'
import { putOnTier } from './on-tier'

interface GroupAdmin {
  connect(): Promise<void>
  disconnect(): Promise<void>
  deleteGroups(groups: string[]): Promise<unknown>
}

export function r18(given: Given): void {
  it('R18 P7: what waits on a retry topic is handled by a group that never joined before', async () => {
    const scene = await given.scene()
    await putOnTier(scene, '200ms', [{ value: 'waiting', dueIn: 0 }])
    await scene.join(undefined, { startFrom: 'latest' })
    await scene.untilCalls(1)
    expect(scene.calls.map(({ value, attempt }) => [value, attempt])).toEqual([['waiting', 2]])
  })

  it('R18 P7: a tier that is added later is read from its beginning too', async () => {
    const scene = await given.scene({ schedule: ['200ms', '400ms'] })
    const first = await scene.join(undefined, { schedule: ['200ms'] })
    await scene.produce(['done'])
    await scene.untilCalls(1)
    await first.stop()
    await putOnTier(scene, '400ms', [{ value: 'waiting', dueIn: 0 }])
    await scene.join(undefined, { startFrom: 'latest' })
    await scene.untilCalls(1, ({ value }) => value === 'waiting')
    expect(scene.values()).toEqual(['done', 'waiting'])
  })

  it('R18 P7: a retry group whose offsets are gone starts at the beginning', async () => {
    const scene = await given.scene()
    const first = await scene.join(({ attempt }) => {
      if (attempt === 1) throw new RetryableError('the shop is closed')
    })
    await scene.produce(['a'])
    await scene.untilDone()
    await first.stop()
    await putOnTier(scene, '200ms', [{ value: 'waiting', dueIn: 0 }])
    const admin = (given.stage().client() as unknown as { admin(): GroupAdmin }).admin()
    await admin.connect()
    await given.stage().during(admin.deleteGroups([scene.retryGroup('200ms')]))
    await admin.disconnect()
    await scene.join(undefined, { startFrom: 'latest' })
    await scene.untilCalls(1, ({ value }) => value === 'waiting')
  })

  it('R18 P7: a new group reads the main topic from its beginning, unless told', async () => {
    const scene = await given.scene()
    await scene.produce(['before'])
    await scene.join()
    await scene.untilCalls(1)
    expect(scene.values()).toEqual(['before'])
  })
}
