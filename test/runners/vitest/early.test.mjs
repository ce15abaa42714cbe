import { test, vi } from 'vitest'
import { story, withFakeTimers } from '../story.cjs'

test('with fake timers that were on before the package was loaded, as by a setup file', async () => {
  vi.useFakeTimers()
  const retryline = await import('retryline')
  const testing = await import('retryline/testing')
  await withFakeTimers(
    (ms) => vi.advanceTimersByTime(ms),
    () => story({ retryline, testing }),
  )
})
