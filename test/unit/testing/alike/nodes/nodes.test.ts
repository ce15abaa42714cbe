import { describe, expect, it } from 'vitest'
import { onFakeNodes } from './on-fake'
import { recorded } from './recorded'
import { nodesStories } from './stories'

describe('the fake with three nodes does what kafkajs did on three real ones', () => {
  it.each(Object.entries(nodesStories))('%s', async (name, story) => {
    expect(await onFakeNodes(story)).toEqual(recorded()[name])
  })
})
