import { describe, expect, it } from 'vitest'
import { isRetrylineError, RetryableError, type RetrylineError } from '../../src'
import type { Given } from './promises'
import type { Scene } from './scene'

const FAILS = (): never => {
  throw new RetryableError('not now')
}

/** P10: every topic is looked at before any is touched, and none appears by itself. */
export function topicPromises(given: Given): void {
  const during = <T>(work: Promise<T>): Promise<T> => given.stage().during(work)

  async function topicsLike(part: string): Promise<string[]> {
    const admin = (given.stage().client() as any).admin()
    await during(admin.connect())
    const all: string[] = await during(admin.listTopics())
    await during(admin.disconnect())
    return all.filter((name) => name.includes(part)).sort()
  }

  async function refusal(scene: Scene, options: Record<string, unknown>): Promise<RetrylineError> {
    const { consumer } = scene.member(undefined, options)
    const error = await during(consumer.start().catch((caught: unknown) => caught))
    if (!isRetrylineError(error, 'RETRYLINE_TOPICS')) throw error ?? new Error('the start was not refused')
    expect(consumer.health().status).toBe('stopped')
    return error
  }

  describe('P10 topics are explicit', () => {
    it('every missing topic is told at once, each with the command that makes it, and none is made', async () => {
      const scene = await given.scene({ schedule: ['200ms'] })
      const typo = given.stage().unique('typo')
      const before = await topicsLike(typo)
      const { problems, message } = await refusal(scene, { topic: [scene.topic, typo], schedule: ['200ms', '7m'] })
      const missing = [typo, `${typo}.retry.200ms`, `${typo}.retry.7m`, `${typo}.dlq`, `${scene.topic}.retry.7m`]
      for (const name of missing) {
        const own = problems.filter((problem) => problem.startsWith(`${name} (`))
        expect(own, name).toHaveLength(1)
        expect(own[0]).toMatch(/does not exist.*kafka-topics\.sh .*--create --topic /)
        expect(message).toContain(own[0])
      }
      expect(problems).toHaveLength(missing.length)
      expect(before).toEqual([])
      expect(await topicsLike(typo)).toEqual([])
      expect(await topicsLike(`${scene.topic}.retry.7m`)).toEqual([])
      expect(await scene.stage.members(scene.group)).toEqual([])
    })

    it('settings that would lose or join records are told, each with the command that mends it', async () => {
      const scene = await given.scene({ schedule: [] })
      const stage = given.stage()
      await stage.createTopics({ [scene.retry('2d')]: 1 }, { 'retention.ms': '3600000', 'cleanup.policy': 'compact' })
      await stage.createTopics({ [scene.retry('1m')]: 1 }, { 'retention.ms': '604800000' })
      const { problems } = await refusal(scene, { schedule: ['1m', '2d'] })
      const own = problems.filter((problem) => problem.startsWith(scene.retry('2d')))
      expect(own.join('\n')).toMatch(/cleanup\.policy is compact.*--add-config cleanup\.policy=delete/)
      expect(own.join('\n')).toMatch(/retention\.ms is 3600000 \(1h\).*--add-config retention\.ms=\d+/)
      expect(problems.filter((problem) => problem.includes('retention') && problem.includes('.retry.1m'))).toEqual([])
    })

    it("R65: topicSetup 'create' makes retry and dead letter topics, and never the main topic", async () => {
      const stage = given.stage()
      const [main, absent] = [stage.unique('made'), stage.unique('absent')]
      await stage.createTopics({ [main]: 3 })
      const scene = await given.scene({ topic: stage.unique('other') })
      const refused = await refusal(scene, { topic: absent, topicSetup: 'create' })
      expect(refused.problems.some((problem) => problem.startsWith(`${absent} (main topic): does not exist`))).toBe(
        true,
      )
      expect(await topicsLike(absent)).toEqual([])

      const { consumer } = scene.member(FAILS, { topic: main, topicSetup: 'create', schedule: ['200ms', '400ms'] })
      await during(consumer.start())
      expect(await topicsLike(main)).toEqual([main, `${main}.dlq`, `${main}.retry.200ms`, `${main}.retry.400ms`])
      for (const name of await topicsLike(main)) expect((await stage.ends(name)).size).toBe(3)
      await stage.produce(main, 2, [{ value: 'bad' }])
      await stage.until(async () => (await stage.records(`${main}.dlq`)).length === 1, 'the dead letter')
      // What it has made passes its own look.
      await during(consumer.stop())
      await during(scene.member(undefined, { topic: main, schedule: ['200ms', '400ms'] }).consumer.start())
    })

    it("topicSetup 'warn' starts all the same, but not without a topic", async () => {
      const scene = await given.scene({ schedule: [] })
      await given.stage().createTopics({ [scene.retry('1h')]: 1 }, { 'cleanup.policy': 'compact' })
      const lines: string[] = []
      const logger = { debug() {}, info() {}, error() {}, warn: (line: string) => void lines.push(line) }
      await scene.join(undefined, { schedule: ['1h'], topicSetup: 'warn', logger })
      expect(lines.join('\n')).toMatch(/cleanup\.policy is compact/)
      await refusal(scene, { schedule: ['1h', '2h'], topicSetup: 'warn' })
    })

    it('topics() names every topic and what it is for', async () => {
      const scene = await given.scene()
      const { consumer } = await scene.join()
      expect(consumer.topics()).toEqual([
        { topic: scene.topic, role: 'main' },
        { topic: scene.retry('200ms'), role: 'retry' },
        { topic: scene.dlq, role: 'dead-letter' },
      ])
    })

    it('a rolling change of the schedule: members with different tiers each get only their own', async () => {
      const scene = await given.scene({ partitions: 4, schedule: ['200ms'] })
      const stage = given.stage()
      await stage.createTopics({ [scene.retry('400ms')]: 4 })
      // Two members of the tier's group that read different topics: a second main topic came with the new release.
      const added = stage.unique('added')
      await stage.createTopics({
        [added]: 4,
        [`${added}.retry.200ms`]: 4,
        [`${added}.retry.400ms`]: 4,
        [`${added}.dlq`]: 4,
      })
      const act = ({ attempt }: { attempt: number }): void => {
        if (attempt === 1) FAILS()
      }
      const old = await scene.join(act)
      const young = await scene.join(act, { topic: [scene.topic, added], schedule: ['200ms', '400ms'] })
      const lanesOf = (member: typeof old): string[] =>
        member.consumer
          .health()
          .groups.flatMap(({ partitions }) => partitions.map(({ topic, partition }) => `${topic}/${partition}`))
      const partitionsOf = (topic: string): string[] => [0, 1, 2, 3].map((partition) => `${topic}/${partition}`)
      const shared = [scene.topic, scene.retry('200ms')].flatMap(partitionsOf)
      const own = [scene.retry('400ms'), added, `${added}.retry.200ms`, `${added}.retry.400ms`].flatMap(partitionsOf)
      await stage.until(
        () => [...lanesOf(old), ...lanesOf(young)].sort().join() === [...shared, ...own].sort().join(),
        () => `every partition has one member: ${lanesOf(old).join()} and ${lanesOf(young).join()}`,
      )
      for (const lane of own) expect(lanesOf(young)).toContain(lane)
      for (const partition of [0, 1, 2, 3]) {
        await scene.produce([`m${partition}`], partition)
        await stage.produce(added, partition, [{ value: `a${partition}` }])
      }
      await scene.untilCalls(8, ({ attempt }) => attempt === 2)
      for (const { topic, member } of scene.calls) if (topic === added) expect(member).toBe(1)
    })

    it('a tier of a former schedule is drained by the next release, and is gone from the one after', async () => {
      const scene = await given.scene({ schedule: ['300ms', '600ms'] })
      const stage = given.stage()
      const before = await scene.join(({ attempt }) => {
        if (attempt === 1) FAILS()
      })
      await scene.produce(['waits'])
      await stage.until(async () => (await stage.records(scene.retry('300ms'))).length === 1, 'the copy stands')
      await before.stop()
      const calls = scene.calls.length
      const after = await scene.join(undefined, { schedule: ['600ms'] })
      if (calls === 1) {
        await scene.untilCalls(2)
        expect(scene.calls[1]).toMatchObject({
          value: 'waits',
          member: 1,
          attempt: 2,
          from: { topic: scene.retry('300ms') },
        })
        const committed = async (): Promise<bigint | undefined> =>
          (await scene.committed(scene.retry('300ms'), scene.retryGroup('300ms'))).get(0)
        await stage.until(async () => (await committed()) === 1n, 'the former tier is committed')
      }
      await after.stop()
      const { consumer } = await scene.join(undefined, { schedule: ['600ms'] })
      expect(consumer.topics().map(({ topic }) => topic)).not.toContain(scene.retry('300ms'))
    })
  })
}
