import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src'
import { expectDead, throwIt } from './hostile-checks'
import { no, revoked, THENABLES, THROWN, untouchable } from './hostile-things'
import type { Given } from './promises'

const NAMES = Object.keys(THROWN)

/** P12: whatever rules, hooks, listeners and loggers do, it is no record's trouble. */
export function hostileJudgePromises(given: Given): void {
  describe('P12 hostile judges and observers', () => {
    it('whatever a classify function does', async () => {
      const scene = await given.scene()
      const answers: Record<string, () => unknown> = {
        ...THROWN,
        ...Object.fromEntries(NAMES.map((name) => [`throws ${name}`, () => throwIt(THROWN[name]!())])),
        ...Object.fromEntries(Object.entries(THENABLES).map(([name, { make }]) => [`then ${name}`, make])),
        'a kind that is not to be had': () => Object.defineProperty({}, 'kind', { get: no }),
        'a retry after NaN': () => ({ kind: 'retry', after: NaN, because: untouchable() }),
        'a retry after -1': () => ({ kind: 'retry', after: -1, because: '\ud800'.repeat(1e5) }),
        'a reason of its own': () => ({ kind: 'dead-letter', reason: revoked(), because: 7 }),
        'a dependency without a name': () => ({ kind: 'hold', dependency: revoked() }),
      }
      const member = await scene.join(({ value }) => throwIt(new Error(value!)), {
        unknownErrors: 'dead-letter',
        classify: (error: Error) => answers[error.message]?.(),
      })
      await scene.produce(Object.keys(answers))
      await scene.untilDone()
      expect(member.hooks.counts.crashed).toBe(0)
      await expectDead(scene, Object.keys(answers))
      expect(scene.values(2).sort()).toEqual(['a retry after -1', 'a retry after NaN'])
    })

    it('whatever rules are', async () => {
      const scene = await given.scene()
      class Odd {
        static [Symbol.hasInstance] = no
      }
      const whens = [
        ...Object.values(THROWN).map((make) => () => throwIt(make())),
        ...Object.values(THENABLES).map(({ make }) => make),
      ]
      const member = await scene.join(({ value }) => throwIt(THROWN[value!]!()), {
        unknownErrors: 'dead-letter',
        classify: [
          ...whens.map((when) => ({ match: { when }, verdict: 'retry' })),
          { match: { type: Odd }, verdict: 'retry' },
          { match: { message: { [Symbol.search]: no } }, verdict: 'retry' },
          { match: { status: untouchable() }, verdict: 'retry' },
        ],
      })
      const few = NAMES.filter((_, i) => i % 6 === 0)
      await scene.produce(few)
      await scene.untilDone()
      expect(member.hooks.counts.crashed).toBe(0)
      await expectDead(scene, few)
    })

    it.each(['hooks', 'listeners', 'logger'])('whatever %s do', async (which) => {
      const scene = await given.scene()
      const makes = [...Object.values(THROWN), ...Object.values(THENABLES).map(({ make }) => make)]
      let at = 0
      const bad = (): unknown => {
        const make = makes[at++ % (2 * makes.length)]
        return make ? throwIt(make()) : makes[at % makes.length]!()
      }
      const logger = { debug: bad, info: bad, warn: bad, error: bad }
      const more = which === 'hooks' ? { hooks: [{ all: bad, attempt: bad, problem: bad }] } : which === 'logger' ? { logger } : {} // prettier-ignore
      const member = scene.member(({ value, ctx }) => {
        ctx.logger.info('at work')
        if (value !== 'good') throw new RetryableError('closed')
      }, more)
      if (which === 'listeners') {
        for (const type of ['all', 'attempt', 'problem', 'rebalanced', 'started'] as 'all'[]) {
          const off = member.consumer.on(type, () => {
            off()
            member.consumer.on(type, bad)
            return bad()
          })
        }
      }
      await given.stage().during(member.consumer.start())
      const bads = Array.from({ length: 30 }, (_, i) => `bad ${i}`)
      await scene.produce([...bads, 'good'])
      await scene.untilDone()
      await expectDead(scene, bads)
      expect(scene.values().filter((value) => value === 'good')).toHaveLength(1)
      const report = await given.stage().during(member.consumer.stop())
      expect(report).toEqual({ abandoned: [], finished: true })
    })
  })
}
