import { expect, test } from 'vitest'
import { createBatchRunner } from '../../../src/consume/batch-runner'
import { silentLogger } from '../../../src/ports'
import { createTestClock } from '../../helpers/test-clock'
import { entry, lane, recorder } from './given'

test('one time-out for the whole batch, however long its values took to decode: a handler that gives up has done none', async () => {
  const clock = createTestClock()
  let late = 0
  // Time goes on while values are decoded one by one.
  const ticking = { ...clock, monotonic: () => clock.monotonic() + late++ * 0.4 }
  const outcomes: string[] = []
  const runner = createBatchRunner({
    handler: (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
    handlerTimeoutMs: 100,
    maxAttempts: 4,
    clock: ticking,
    logger: silentLogger,
    emitter: recorder(clock).emitter,
    frameName: 'handled',
    ended: (_, { kind }) => void outcomes.push(kind),
    pauseChanged: () => undefined,
    stopping: () => false,
  })
  const batch = runner.open(lane())
  for (let offset = 0; offset < 20; offset++) runner.add(batch, entry(offset), { ok: true, value: offset })
  runner.run(batch)
  await clock.advance(200)
  expect(outcomes).toEqual(Array<string>(20).fill('timeout'))
})
