/**
 * R05: the offset moves, the record is nowhere.
 * Given records with random fates (handled, retried, hopeless), publishes and commits that fail at random.
 * When a member dies in the middle and another takes over.
 * Then at every commit each offset below it is handled or its copy was acknowledged, and in the end each record is where
 * its fate says: an account, kept for every commit that a broker took.
 */
import { expect, it } from 'vitest'
import { NonRetryableError, RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { header, type Call, type Member, type Scene } from '../contract/scene'
import { seeded } from '../contract/seeded'

const PARTITIONS = 3
const FAULTS = ['reject', 'empty', 'answer-lost', 'error-code', 'partial'] as const
const ORDERINGS = ['partition', 'key', 'unordered'] as const
/** Seeds of a round: a real broker takes the first of each. */
const ROUND = 5

export function r05(given: Given): void {
  async function account(scene: Scene, seed: number): Promise<void> {
    const random = seeded(seed)
    // A real broker needs some time for each fault.
    const records = given.stage().kind === 'fake' ? 40 : 20
    const handled = new Set<string>()
    const fates = new Map<string, string>()
    const act = async ({ value, partition, offset, attempt }: Call): Promise<void> => {
      const fate = fates.get(String(value))
      if (random() < 0.3) await given.stage().takes(Math.round(random() * 60))
      if (fate === 'fatal') throw new NonRetryableError('a bad order')
      if (fate === 'hopeless' || (fate === 'shaky' && attempt < 3)) throw new RetryableError('the shop is closed')
      handled.add(`${partition}@${offset}`)
    }
    const options = { ordering: ORDERINGS[seed % 3], publishTimeout: '1s' }
    const missing = new Set<string>()
    const join = async (): Promise<Member> => {
      const member = scene.member(act, options)
      member.faults.onTaken = ({ topic, partition, offset }) => {
        if (topic !== scene.topic) return
        const copied = new Set(scene.members.flatMap(({ faults }) => [...faults.copied]))
        for (let below = 0n; below < offset; below++) {
          const place = `${partition}@${below}`
          if (!handled.has(place) && !copied.has(place)) missing.add(`${place} was committed and is nowhere`)
        }
      }
      await given.stage().during(member.consumer.start())
      return member
    }
    const first = await join()
    for (let n = 0; n < records; n++) {
      const fate = ['ok', 'ok', 'ok', 'fatal', 'hopeless', 'shaky'][Math.floor(random() * 6)] ?? 'ok'
      fates.set(`r${n}`, fate)
      await scene.produce([{ key: `k${n % 5}`, value: `r${n}` }], n % PARTITIONS)
      if (random() < 0.2) first.faults.publish(FAULTS[Math.floor(random() * FAULTS.length)] ?? 'reject', { times: 1 })
      if (random() < 0.1) first.faults.commit(random() < 0.5 ? 'reject' : 'answer-lost', { times: 1 })
    }
    await scene.untilCalls(1 + Math.floor(random() * records))
    await given.stage().during(first.faults.kill())
    const second = await join()
    second.faults.publish('empty', { times: 2 })
    await scene.untilDone()

    expect([...missing], `seed ${seed}`).toEqual([])
    const dead = new Set(
      (await scene.dead()).map((one) => `${header(one, 'x-original-partition')}@${header(one, 'x-original-offset')}`),
    )
    for (let n = 0; n < records; n++) {
      const place = `${n % PARTITIONS}@${Math.floor(n / PARTITIONS)}`
      const isBad = ['fatal', 'hopeless'].includes(fates.get(`r${n}`) ?? '')
      expect([seed, place, dead.has(place), handled.has(place)]).toEqual([seed, place, isBad, !isBad])
    }
  }

  it.each([1, 2, 3])('R05 P1: random outcomes, faults and a crash (round %i)', { timeout: 60_000 }, async (round) => {
    const seeds = given.stage().kind === 'fake' ? ROUND : 1
    for (let n = 0; n < seeds; n++) {
      const scene = await given.scene({ partitions: PARTITIONS, schedule: ['200ms', '400ms'] })
      await account(scene, round + 3 * n)
      await scene.close()
    }
  })
}
