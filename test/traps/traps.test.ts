import { describe, expect, it } from 'vitest'
import { onFake } from '../unit/testing/alike/on-fake'
import { recorded, stories } from './stories'

describe('the fake has the faults that kafkajs showed on a real broker', () => {
  it.each(Object.entries(stories))('%s', async (name, story) => {
    expect(await onFake(story)).toEqual(recorded()[name])
  })
})
