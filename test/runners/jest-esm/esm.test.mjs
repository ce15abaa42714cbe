import { createRequire } from 'node:module'
import { afterEach, beforeEach, describe, jest, test } from '@jest/globals'
import * as retryline from 'retryline'
import * as testing from 'retryline/testing'
import stories from '../story.cjs'

const { story, withFakeTimers } = stories
const require = createRequire(import.meta.url)

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

test('a consumer of the CJS build on a broker of the ESM build, looked at by the CJS build', () =>
  story({ retryline: require('retryline'), testing, helpers: require('retryline/testing') }))
