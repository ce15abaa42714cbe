/**
 * Walks at random on a real broker. To hunt for what the fake does otherwise, with seeds that are not kept:
 *
 *   WALKS=100-120 npx vitest run test/traps/walks.real.test.ts --reporter=verbose
 *
 * Not each difference is the fake's: where a member dies in the midst of a join, how often records come again is chance.
 */
import { afterAll, expect, it } from 'vitest'
import { describeWithBroker } from '../helpers/broker-shared'
import { onFake } from '../unit/testing/alike/on-fake'
import { onReal } from '../unit/testing/alike/on-real'
import { walking } from './walk'
import { walkOf } from './walk-plan'
import { ON_REAL, recordedWalks, recordWalks, SEEDS, type Walked } from './walks'

const recording = process.env.RECORD === '1'
const hunt = process.env.WALKS?.split('-').map(Number)

describeWithBroker('walks at random', ({ brokers }) => {
  const walked: Walked = {}

  it.each(recording ? SEEDS : SEEDS.slice(0, ON_REAL))('walk %s goes as recorded', async (seed) => {
    walked[seed] = await onReal(walking(walkOf(seed)), brokers)
    if (!recording) expect(walked[seed]).toEqual(recordedWalks()[seed])
  })

  if (hunt !== undefined) {
    const [from = 1, to = from] = hunt
    it.each(Array.from({ length: to - from + 1 }, (_, i) => from + i))('walk %s goes as on the fake', async (seed) => {
      const walk = walkOf(seed)
      const fake = await onFake(walking(walk))
      const real = await onReal(walking(walk), brokers)
      const at = real.findIndex((one, i) => JSON.stringify(one) !== JSON.stringify(fake[i]))
      const steps = [walk.settings, ...walk.steps.slice(0, at + 1)].map((step) => JSON.stringify(step)).join('\n')
      expect(fake[at], `walk ${seed}, step ${at} of\n${steps}`).toEqual(real[at])
    })
  }

  afterAll(() => {
    if (recording) recordWalks(walked)
  })
})
