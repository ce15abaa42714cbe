import { expect, test } from 'vitest'
import { createManualClock } from '../../../src/testing/clock'
import { GroupCoordinator } from '../../../src/testing/group-coordinator'
import type { JoinRequest } from '../../../src/testing/group-types'
import { TopicStore } from '../../../src/testing/topics'

// Kafka's DelayedSync: a leader that has joined and never syncs is dropped at the end of its rebalance time-out.
test('a member that joins and never syncs is dropped after the rebalance time-out, though it heartbeats', async () => {
  const clock = createManualClock()
  const coordinator = new GroupCoordinator(clock, new TopicStore())
  let nudges = 0
  const asks = (memberId: string): JoinRequest => ({
    groupId: 'billing',
    memberId,
    clientId: 'worker',
    sessionTimeout: 30_000,
    rebalanceTimeout: 60_000,
    protocols: [{ name: 'range', metadata: Buffer.alloc(0) }],
    nudge: () => nudges++,
  })
  const joined = coordinator.join(asks(''))
  await clock.settle()
  const { memberId, generationId } = await joined
  for (let waited = 0; waited < 50_000; waited += 10_000) {
    await clock.advance('10s')
    coordinator.heartbeat('billing', generationId, memberId)
  }
  expect(coordinator.view('billing')).toMatchObject({ state: 'CompletingRebalance', members: [{ memberId }] })
  await clock.advance('10s')
  expect(() => coordinator.heartbeat('billing', generationId, memberId)).toThrow('not aware of this member')
  expect(coordinator.view('billing').members).toEqual([])
  expect(nudges).toBe(1)
})

test('once all have synced nothing waits any more', async () => {
  const clock = createManualClock()
  const coordinator = new GroupCoordinator(clock, new TopicStore())
  const joined = coordinator.join({
    groupId: 'billing',
    memberId: '',
    clientId: 'worker',
    sessionTimeout: 1_800_000,
    rebalanceTimeout: 60_000,
    protocols: [{ name: 'range', metadata: Buffer.alloc(0) }],
    nudge: () => undefined,
  })
  await clock.settle()
  const { memberId, generationId } = await joined
  await coordinator.sync('billing', generationId, memberId, new Map([[memberId, Buffer.from('all')]]))
  await clock.advance('10m')
  expect(coordinator.view('billing')).toMatchObject({ state: 'Stable', generationId, members: [{ memberId }] })
})
