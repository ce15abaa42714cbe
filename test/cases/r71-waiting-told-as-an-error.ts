/**
 * R71: waiting told as an error.
 * Given a consumer with a logger.
 * When a record fails, waits, and succeeds; while it waits, and for other records beside it.
 * Then no line is a warning or an error, the failure itself is one line at info, the health is ok and says `waiting` with
 * the time, and the depth of the lane is told to a gauge.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'

export function r71(given: Given): void {
  it('R71 P12: one wait is one line at info, and a state', async () => {
    const scene = await given.scene({ schedule: ['1s'] })
    const lines: string[] = []
    const at = (level: string) => (text: string) => void lines.push(`${level} ${text}`)
    const { consumer, hooks } = await scene.join(
      ({ attempt }) => {
        if (attempt === 1) throw new RetryableError('not now')
      },
      { logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } },
    )
    // What is said of the topics at the start is another matter.
    lines.length = 0
    await scene.produce(['a', 'b'])
    const tier = () => consumer.health().groups[1]?.partitions[0]
    await given.stage().until(() => tier()?.held === 2 && tier()?.state === 'waiting', 'both wait')
    expect(tier()).toMatchObject({ running: 0 })
    expect(tier()!.nextDueAt).toBeGreaterThan(given.stage().now() - 1)
    expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
    await scene.untilDone()
    expect(lines.filter((line) => /^(warn|error)/.test(line))).toEqual([])
    expect(lines.filter((line) => line.startsWith('info failed, attempt 2 follows on'))).toHaveLength(2)
    const depths = hooks.events('lane').filter(({ tier }) => tier === '1s')
    expect(Math.max(...depths.map(({ held }) => held))).toBeGreaterThan(0)
    expect(depths.at(-1)?.held).toBe(0)
  })
}
