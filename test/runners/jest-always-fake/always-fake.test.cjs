// Fake timers are on by the config, also while the package is loaded.
const retryline = require('retryline')
const testing = require('retryline/testing')
const { story, withFakeTimers } = require('../story.cjs')

test('with fake timers from the beginning', () =>
  withFakeTimers(
    (ms) => jest.advanceTimersByTime(ms),
    () => story({ retryline, testing }),
  ))

test('with real timers', async () => {
  jest.useRealTimers()
  await story({ retryline, testing })
})
