import { describe, expect, it } from 'vitest'
import { onFake } from '../unit/testing/alike/on-fake'
import { walking } from './walk'
import { walkOf } from './walk-plan'
import { recordedWalks, SEEDS } from './walks'

describe('the fake goes the way that kafkajs went on a real broker', () => {
  it.each(SEEDS)('walk %s', async (seed) => {
    expect(await onFake(walking(walkOf(seed)))).toEqual(recordedWalks()[seed])
  })
})

describe('a walk', () => {
  it('is the same for the same seed, and another for another', () => {
    expect(walkOf(5)).toEqual(walkOf(5))
    expect(walkOf(5)).not.toEqual(walkOf(6))
  })
})
