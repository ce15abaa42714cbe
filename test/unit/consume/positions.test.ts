import { expect, test } from 'vitest'
import { createPositions } from '../../../src/consume/positions'
import type { FetchedBatch, LogRange } from '../../../src/ports'
import { createTestClock } from '../../helpers/test-clock'
import { hold, lane, recorder, type Held } from './given'

function setUp(position: bigint) {
  const clock = createTestClock()
  const told: string[] = []
  const asked: Held<readonly LogRange[]>[] = []
  const one = lane()
  one.open(position, { offset: position, metadata: '' })
  const positions = createPositions({
    admin: {
      committed: () => Promise.resolve([]),
      ranges: () => {
        const answer = hold<readonly LogRange[]>()
        asked.push(answer)
        return answer.promise
      },
    } as never,
    emitter: recorder(clock).emitter,
    consumer: {
      seek: (_, offset) => told.push(`seek ${offset}`),
      pause: () => told.push('pause'),
      resume: () => told.push('resume'),
    },
    groupId: 'billing',
    stopping: () => false,
    wait: (ms) => new Promise((resolve) => clock.after(ms, resolve)),
    remade: (_, low) => told.push(`remade at ${low}`),
    moved: () => undefined,
  })
  const refuse = (fetchedOffset: bigint): void =>
    positions.refuse(one, { topic: one.topic, partition: one.partition, fetchedOffset } as FetchedBatch)
  const answer = async (high: bigint): Promise<void> => {
    asked.shift()!.resolve([{ topic: one.topic, partition: one.partition, low: 0n, high }])
    await clock.settle()
  }
  const fail = async (): Promise<void> => {
    asked.shift()!.reject(new Error('no coordinator'))
    await clock.settle()
  }
  return { one, told, asked, refuse, answer, fail, clock, settle: () => clock.settle() }
}

test('P6: a lane that goes on while its log is looked up is not beyond the end that was told', async () => {
  const { one, told, refuse, answer, settle } = setUp(7n)
  refuse(3n)
  await settle()
  // What had been fetched already comes, and continues the lane.
  one.position = 8n
  await answer(7n)
  refuse(3n)
  await settle()
  one.position = 9n
  await answer(8n)
  expect(told).toEqual(['pause', 'seek 8', 'resume', 'pause', 'seek 9', 'resume'])
})

test('a log that ends below the lane is another one, once that was told twice of the same place', async () => {
  const { told, refuse, answer, settle } = setUp(7n)
  refuse(0n)
  await settle()
  await answer(2n)
  expect(told).toEqual(['pause', 'seek 7', 'resume'])
  refuse(0n)
  await settle()
  await answer(2n)
  expect(told.slice(3)).toEqual(['pause', 'remade at 0'])
})

test('where the log cannot be looked up, the fetches go on later and later, and soon again once it can', async () => {
  const { told, asked, refuse, answer, fail, clock, settle } = setUp(7n)
  const waits: number[] = []
  for (let i = 0; i < 8; i++) {
    refuse(9n)
    await settle()
    await fail()
    // Meanwhile nothing is asked, whatever comes.
    refuse(9n)
    await settle()
    expect([asked.length, told.includes('resume')]).toEqual([0, false])
    waits.push(clock.nextIn!)
    await clock.advance(clock.nextIn!)
    expect(told.splice(0)).toEqual(['pause', 'pause', 'seek 7', 'resume'])
  }
  expect(waits).toEqual([200, 400, 800, 1600, 3200, 5000, 5000, 5000])
  refuse(9n)
  await settle()
  await answer(20n)
  expect(told.splice(0)).toEqual(['pause', 'seek 7', 'resume'])
  refuse(9n)
  await settle()
  await fail()
  expect(clock.nextIn).toBe(200)
})
