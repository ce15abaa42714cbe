const { mock, test } = require('node:test')
const retryline = require('retryline')
const testing = require('retryline/testing')
const { story, withFakeTimers } = require('../story.cjs')

test('with real timers', () => story({ retryline, testing }))

test('with fake timers', async () => {
  mock.timers.enable()
  try {
    await withFakeTimers(
      (ms) => mock.timers.tick(ms),
      () => story({ retryline, testing }),
    )
  } finally {
    mock.timers.reset()
  }
})
