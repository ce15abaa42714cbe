const retryline = require('retryline')
const testing = require('retryline/testing')
const { story, withFakeTimers } = require('../story.cjs')

test('with real timers', () => story({ retryline, testing }))

describe('with fake timers', () => {
  beforeEach(() => void jest.useFakeTimers())
  afterEach(() => void jest.useRealTimers())

  test('the story', () =>
    withFakeTimers(
      (ms) => jest.advanceTimersByTime(ms),
      () => story({ retryline, testing }),
    ))
})
