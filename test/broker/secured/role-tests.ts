/** Programs of the user's own, beside a consumer that runs and has one dead letter: what they must be allowed. */
import { Kafka, type KafkaConfig } from 'kafkajs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ForbiddenError } from '../../../src'
import { accessOf, buildTopology, type Access } from '../../../src/topology'
import type { SecuredBroker } from '../../helpers/broker-secured'
import { needed, openJob, quick, type Job } from './job'
import { oldestDeadLetter, replayOne, watch } from './roles'

// The names differ from test to test, the lines do not.
export const NAMES = buildTopology({ topics: ['orders'], groupId: 'billing', delays: [100, 200] })

export const key = ({ operation, resourceType, name, pattern }: Access): string =>
  `${operation} ${resourceType} ${name} ${pattern}`

type Login = (more?: Partial<KafkaConfig>, password?: string, username?: string) => KafkaConfig

/** The tests of one role, whose user has its name. */
export function besideAConsumer(role: 'replayer' | 'monitor', broker: () => SecuredBroker, login: Login): void {
  const principal = `User:${role}`
  let one: Job
  let list: readonly Access[]

  beforeAll(async () => {
    one = await openJob(broker(), quick(login()))
    list = accessOf(one.topology, role)
    await broker().allow('User:billing', needed(one.access, 'verify'))
    await one.consumer.start()
    await one.produce('bad')
    await one.untilDead(1)
  })
  afterAll(() => one.consumer.stop({ timeout: '5s' }))

  const client = (): Kafka => new Kafka(quick(login({}, undefined, role)))
  const act = (when: Access['when']): Promise<unknown> => {
    if (role === 'replayer') return replayOne(client(), one.topology, when === 'toMain' ? 'main' : 'retry')
    return when === 'records' ? oldestDeadLetter(client(), one.topology, role) : watch(client(), one.topology)
  }
  const withThese = async <T>(these: readonly Access[], run: () => Promise<T>): Promise<T> => {
    await broker().allow(principal, these)
    return run().finally(() => broker().withdraw(principal, these))
  }

  it.each(accessOf(NAMES, role).map((line, i) => [key(line), i] as const))(
    'each of its permissions is needed: %s',
    async (_, i) => {
      const missing = list[i]!
      const others = list.filter((line) => line !== missing && [undefined, missing.when].includes(line.when))
      // A replayer always writes somewhere: to the retry topic, where the line does not say.
      if (role === 'replayer' && missing.when === undefined) others.push(...list.filter((l) => l.when === 'toRetry'))
      const error = await withThese(others, () => act(missing.when)).then(
        () => undefined,
        (caught: unknown) => caught,
      )
      expect(error).toBeInstanceOf(ForbiddenError)
      const told = error as ForbiddenError
      const { operation, resourceType } = missing
      expect(told).toMatchObject({ code: 'RETRYLINE_FORBIDDEN', operation, resourceType, principal })
      expect(told.resources).toHaveLength(1)
      const [name = ''] = told.resources
      expect(missing.pattern === 'prefixed' ? name.startsWith(missing.name) : name === missing.name).toBe(true)
      expect(told.message).toContain(`${principal} may not ${operation} ${resourceType} '${name}'; allow it: `)
    },
  )

  const allowed = (when?: Access['when']): Access[] => list.filter((line) => [undefined, when].includes(line.when))

  if (role === 'replayer') {
    it.each([
      ['toRetry', 'retry', 2],
      ['toMain', 'main', 3],
    ] as const)('the least is enough to put a dead letter back: %s', async (when, to, attempts) => {
      const before = one.calls.length
      const dead = await withThese(allowed(when), () => replayOne(client(), one.topology, to))
      // Its handler fails again, until nothing is left to try.
      await one.untilDead(dead + 1)
      expect(one.calls.slice(before)).toEqual(Array(attempts).fill('bad'))
    })
    return
  }

  it('the least is enough to watch', async () => {
    const { groupId, tiers, topics } = one.topology
    const dead = one.topology.deadLetterTopic(topics[0]!)
    const letter = await oldestDeadLetter(broker().superKafka, one.topology, 'super')
    await withThese(allowed(), async () => {
      const ageNow = (): number => Date.now() - Number(letter.timestamp)
      const least = ageNow()
      const { sizes, agesMs, retentionsMs } = await watch(client(), one.topology)
      expect([...sizes.keys()]).toContain(dead)
      expect([...sizes.values()]).toEqual([1, 1, 1])
      expect(agesMs.get(dead)).toBeGreaterThanOrEqual(least)
      expect(agesMs.get(dead)).toBeLessThanOrEqual(ageNow() + 1_000)
      expect([...retentionsMs.values()]).toEqual([604_800_000, 604_800_000, 604_800_000])
      const none = [groupId, ...tiers.map((tier) => tier.groupId)].map((id) => [id, 0])
      // The last commit may still be on its way.
      await one.until(async () => String([...(await watch(client(), one.topology)).lags]) === String(none))
    })
  })

  it('the least is enough to show a dead letter', async () => {
    const letter = await withThese(allowed('records'), () => oldestDeadLetter(client(), one.topology, role))
    expect(String(letter.value)).toBe('bad')
  })
}
