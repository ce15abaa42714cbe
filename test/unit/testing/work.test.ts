import type * as AsyncHooks from 'node:async_hooks'
import { expect, it, vi } from 'vitest'
import { createFakeKafka } from '../../../src/testing'

const made = vi.hoisted(() => ({ storages: 0 }))
vi.mock('node:async_hooks', async (original) => {
  const hooks = await original<typeof AsyncHooks>()
  class Counted<T> extends hooks.AsyncLocalStorage<T> {
    constructor() {
      super()
      made.storages++
    }
  }
  return { ...hooks, AsyncLocalStorage: Counted }
})

// Node 20 asks every storage that was ever used at every promise: one for each broker makes each test slower than the last.
it('all fake brokers of a process share one storage of courses', async () => {
  for (let i = 0; i < 3; i++) {
    const { clock } = createFakeKafka()
    const work = clock.track(() => 'a call')
    await work.run(() => expect(clock.advance(1)).rejects.toThrow('inside a handler (a call)'))
    work.done()
  }
  expect(made.storages).toBe(1)
})
