/**
 * R02: a publish that resolves and has not published.
 * Given a failed record whose copy is refused, or answered with nothing, with an error code inside, or not at all.
 * When the engine has that answer, or its time-out.
 * Then the offset of the record is not committed, the failure is told, and the copy is sent again until it stands.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'

export function r02(given: Given): void {
  it.each(['reject', 'empty', 'error-code', 'never'] as const)(
    'R02 P1: a publish that answers "%s" holds the offset, and is tried again',
    async (kind) => {
      const scene = await given.scene({ partitions: 2 })
      const member = await scene.join(
        ({ value }) => {
          if (value === 'bad') throw new RetryableError('the shop is closed')
        },
        { publishTimeout: '1s' },
      )
      const fault = member.faults.publish(kind)
      await scene.produce(['good', 'bad', 'behind'])
      await given.stage().until(() => member.hooks.counts.publishFailed >= 1, 'the failed publish is reported')
      await scene.witness(1)
      expect((await scene.committed()).get(0)).toBe(1n)
      expect(await given.stage().records(scene.retry('200ms'))).toHaveLength(0)

      fault.stop()
      await scene.untilDone()
      expect((await scene.dead()).map(({ value }) => String(value))).toEqual(['bad'])
      const firsts = scene.calls.filter(({ attempt, partition }) => attempt === 1 && partition === 0)
      expect(firsts.map(({ value }) => value)).toEqual(['good', 'bad', 'behind'])
      scene.expectNoStepBack()
    },
  )
}
