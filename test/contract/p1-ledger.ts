import { describe, expect, it } from 'vitest'
import { NonRetryableError, RetryableError } from '../../src'
import type { Given } from './promises'
import { header, type Call } from './scene'

/** The same numbers for the same seed, on every machine. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const RECORDS = 40
const PARTITIONS = 3

/** P1 as an account: at every commit, each offset below it is handled, or its copy was acknowledged. */
export function ledgerPromises(given: Given): void {
  describe('P1 nothing lost: the ledger', () => {
    it.each([1, 2, 3])('R05: random outcomes, publish faults, refused commits and a crash (seed %i)', async (seed) => {
      const random = seeded(seed)
      const scene = await given.scene({ partitions: PARTITIONS, schedule: ['200ms', '400ms'] })
      const handled = new Set<string>()
      const fates = new Map<string, string>()
      const act = async ({ value, partition, offset, attempt }: Call): Promise<void> => {
        const fate = fates.get(String(value))
        if (random() < 0.3) await given.stage().takes(Math.round(random() * 60))
        if (fate === 'fatal') throw new NonRetryableError('a bad order')
        if (fate === 'hopeless' || (fate === 'shaky' && attempt < 3)) throw new RetryableError('the shop is closed')
        handled.add(`${partition}@${offset}`)
      }
      const options = { ordering: (['partition', 'key', 'unordered'] as const)[seed % 3], publishTimeout: '1s' }
      const account = new Set<string>()
      const join = async (): Promise<Awaited<ReturnType<typeof scene.join>>> => {
        const member = scene.member(act, options)
        member.faults.onTaken = ({ topic, partition, offset }) => {
          if (topic !== scene.topic) return
          const copied = new Set(scene.members.flatMap(({ faults }) => [...faults.copied]))
          for (let below = 0n; below < offset; below++) {
            const place = `${partition}@${below}`
            if (!handled.has(place) && !copied.has(place)) account.add(`${place} was committed and is nowhere`)
          }
        }
        await given.stage().during(member.consumer.start())
        return member
      }
      const first = await join()
      const kinds = ['reject', 'empty', 'answer-lost', 'error-code', 'partial'] as const
      for (let n = 0; n < RECORDS; n++) {
        const fate = ['ok', 'ok', 'ok', 'fatal', 'hopeless', 'shaky'][Math.floor(random() * 6)] ?? 'ok'
        fates.set(`r${n}`, fate)
        await scene.produce([{ key: `k${n % 5}`, value: `r${n}` }], n % PARTITIONS)
        if (random() < 0.2) first.faults.publish(kinds[Math.floor(random() * kinds.length)] ?? 'reject', { times: 1 })
        if (random() < 0.1) first.faults.commit(random() < 0.5 ? 'reject' : 'answer-lost', { times: 1 })
      }
      await scene.untilCalls(RECORDS / 2)
      await given.stage().during(first.faults.kill())
      const second = await join()
      second.faults.publish('empty', { times: 2 })
      await scene.untilDone()

      expect([...account]).toEqual([])
      const dead = new Set(
        (await scene.dead()).map((one) => `${header(one, 'x-original-partition')}@${header(one, 'x-original-offset')}`),
      )
      for (let n = 0; n < RECORDS; n++) {
        const place = `${n % PARTITIONS}@${Math.floor(n / PARTITIONS)}`
        const isBad = ['fatal', 'hopeless'].includes(fates.get(`r${n}`) ?? '')
        expect([place, dead.has(place), handled.has(place)]).toEqual([place, isBad, !isBad])
      }
    })
  })
}
