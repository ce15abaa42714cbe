import { expect } from 'vitest'
import type { ClassifyOption } from '../../src'
import type { Given } from '../contract/promises'
import { numbered } from './numbered'

const OPTIONS = { outage: { failures: 5, within: '10s', probe: '100ms', maxProbe: '1s' } }
/** A real broker's test does not sit out half a minute. */
const away = (kind: 'fake' | 'real'): number => (kind === 'fake' ? 30_000 : 2_000)

/** 1,000 records whose handler fails with `error` for half a minute, and then no more. */
export async function waitsForDatabase(
  given: Given,
  error: () => Error,
  options: { classify?: ClassifyOption } = {},
): Promise<void> {
  const stage = given.stage()
  const scene = await given.scene({ partitions: 2 })
  let isBack = false
  const act = (): void => {
    if (!isBack) throw error()
  }
  const member = await scene.join(act, { ...OPTIONS, ...options })
  for (const partition of [0, 1]) await scene.produce(numbered(500), partition)
  await stage.until(() => member.consumer.health().status === 'held', 'it says that it holds')
  const { outages, groups } = member.consumer.health()
  expect(outages).toMatchObject([{ dependency: 'the database' }])
  expect(groups.flatMap(({ partitions }) => partitions).map(({ heldBy }) => heldBy)).toContain('the database')

  const until = stage.now() + away(stage.kind)
  await stage.until(() => stage.now() >= until, 'it was away long enough')
  expect(member.consumer.health().status).toBe('held')
  expect(await scene.dead()).toEqual([])
  const waiting = [...(await scene.committed()).values()].reduce((sum, at) => sum + at, 0n)
  expect(waiting).toBeLessThanOrEqual(BigInt(OPTIONS.outage.failures))

  isBack = true
  await scene.untilDone()
  expect(await scene.dead()).toEqual([])
  expect((await stage.records(scene.retry('200ms'))).length).toBeLessThan(OPTIONS.outage.failures)
  expect(new Set(scene.calls.map(({ partition, value }) => `${partition} ${value}`)).size).toBe(1_000)
  expect(member.consumer.health()).toMatchObject({ status: 'ok', outages: [] })
}
