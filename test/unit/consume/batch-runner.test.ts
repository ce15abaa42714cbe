import { expect, test } from 'vitest'
import { createBatchRunner } from '../../../src/consume/batch-runner'
import { silentLogger } from '../../../src/ports'
import { createTestClock } from '../../helpers/test-clock'
import { entry, lane, recorder } from './given'

test('one time-out for the whole batch, however long its values took to decode: a handler that gives up has done none', async () => {
  const clock = createTestClock()
  const outcomes: string[] = []
  const runner = createBatchRunner({
    handler: (_, { signal }) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
    handlerTimeoutMs: 100,
    maxAttempts: 4,
    clock,
    logger: silentLogger,
    emitter: recorder(clock).emitter,
    frameName: 'handled',
    ended: (_, { kind }) => void outcomes.push(kind),
    pauseChanged: () => undefined,
    stopping: () => false,
  })
  const batch = runner.open(lane())
  for (let offset = 0; offset < 20; offset++) {
    runner.add(batch, entry(offset), { ok: true, value: offset })
    // Time goes on while values are decoded one by one.
    await clock.advance(0.4)
  }
  runner.run(batch)
  await clock.advance(200)
  expect(outcomes).toEqual(Array<string>(20).fill('timeout'))
})
