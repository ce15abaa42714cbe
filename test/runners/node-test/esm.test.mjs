import { createRequire } from 'node:module'
import { mock, test } from 'node:test'
import * as retryline from 'retryline'
import * as testing from 'retryline/testing'
import { story, withFakeTimers } from '../story.cjs'

const require = createRequire(import.meta.url)

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

test('a consumer of the CJS build on a broker of the ESM build, looked at by the CJS build', () =>
  story({ retryline: require('retryline'), testing, helpers: require('retryline/testing') }))

test('a consumer of the ESM build on a broker of the CJS build, looked at by the ESM build', () =>
  story({ retryline, testing: require('retryline/testing'), helpers: testing }))
