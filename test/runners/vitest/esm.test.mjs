import { createRequire } from 'node:module'
import * as retryline from 'retryline'
import * as testing from 'retryline/testing'
import { afterEach, beforeEach, describe, test, vi } from 'vitest'
import { story, withFakeTimers } from '../story.cjs'

const require = createRequire(import.meta.url)
const cjs = { retryline: require('retryline'), testing: require('retryline/testing') }

test('with real timers', () => story({ retryline, testing }))
test('with real timers, CJS', () => story(cjs))

describe('with fake timers', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test.each([
    ['ESM', { retryline, testing }],
    ['CJS', cjs],
  ])('%s', (_, builds) =>
    withFakeTimers(
      (ms) => vi.advanceTimersByTime(ms),
      () => story(builds),
    ),
  )
})

test('a consumer of the CJS build on a broker of the ESM build, looked at by the CJS build', () =>
  story({ retryline: cjs.retryline, testing, helpers: cjs.testing }))
