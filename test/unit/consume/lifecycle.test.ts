import { expect, test } from 'vitest'
import { createLifecycle, type Running } from '../../../src/consume/lifecycle'
import { silentLogger } from '../../../src/ports'
import { createTestClock } from '../../helpers/test-clock'
import { hold, isSettled, recorder } from './given'

test('P9: a stop that overtakes the checks of a start takes down what these come to after it', async () => {
  for (const end of ['resolve', 'reject'] as const) {
    const clock = createTestClock()
    const prepared = hold<Running>()
    const done: string[] = []
    const lifecycle = createLifecycle({
      clock,
      emitter: recorder(clock).emitter,
      logger: silentLogger,
      shutdownTimeoutMs: 20_000,
      frameName: 'frame',
      prepare: () => prepared.promise,
      closeOutbox: () => done.push('outbox closed'),
      async disconnect() {
        done.push('disconnected')
      },
    })
    const starting = lifecycle.start().catch((error: unknown) => error)
    const stopping = lifecycle.stop({ timeout: 0 })
    await clock.advance(100)
    // That ends what is under way, which may yet connect anew.
    expect(done).toEqual(['outbox closed', 'disconnected'])
    expect(await isSettled(stopping)).toBe(false)
    if (end === 'resolve') prepared.resolve({ groups: [], release: () => done.push('groups released') })
    else prepared.reject(new Error('not connected'))
    expect(await stopping).toEqual({ abandoned: [], finished: true })
    const released = end === 'resolve' ? ['groups released'] : []
    expect(done).toEqual(['outbox closed', 'disconnected', 'disconnected', ...released])
    expect(await starting).toMatchObject({ code: end === 'resolve' ? 'RETRYLINE_STATE' : 'RETRYLINE_CONNECT' })
    expect([lifecycle.state(), clock.timers]).toEqual(['stopped', 0])
  }
})
