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
      sessionTimeoutMs: 30_000,
      rebalanceTimeoutMs: 60_000,
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

test('P12: a start that waits for its groups to settle says what for, and how long at most; once', async () => {
  const clock = createTestClock()
  const lines: string[] = []
  const joins = [hold<void>(), hold<void>()]
  const groups = joins.map(({ promise }, i) => ({ groupId: ['billing', 'billing.retry.1m'][i], start: () => promise }))
  const lifecycle = createLifecycle({
    clock,
    emitter: recorder(clock).emitter,
    logger: { ...silentLogger, info: (line, fields) => void lines.push(`${String(fields?.groupId)}: ${line}`) },
    shutdownTimeoutMs: 20_000,
    sessionTimeoutMs: 45_000,
    rebalanceTimeoutMs: 60_000,
    frameName: 'frame',
    prepare: async () => ({ groups: groups as unknown as Running['groups'], release: () => undefined }),
    closeOutbox: () => undefined,
    disconnect: async () => undefined,
  })
  const starting = lifecycle.start()
  joins[0]?.resolve()
  await clock.advance(9_999)
  expect(lines).toEqual([])
  await clock.advance(1)
  expect(lines).toEqual([
    expect.stringMatching(/^billing: start\(\) still waits for the group billing\.retry\.1m to settle: /),
  ])
  expect(lines[0]).toContain('up to rebalanceTimeout (1m)')
  expect(lines[0]).toContain('until sessionTimeout (45s) has passed')
  await clock.advance(30_000)
  expect(lines).toHaveLength(1)
  joins[1]?.resolve()
  await starting
  expect(clock.timers).toBe(0)
})
