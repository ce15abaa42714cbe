import { describe, expect, it } from 'vitest'
import { onFake } from './on-fake'
import { recorded, stories } from './stories'

describe('the fake does what kafkajs did on a real broker', () => {
  it.each(Object.entries(stories))('%s', async (name, story) => {
    expect(await onFake(story)).toEqual(recorded()[name])
  })
})
