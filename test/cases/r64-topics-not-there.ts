/**
 * R64: topics that are not there.
 * Given a main topic of 5 partitions and no retry or dead letter topic.
 * When consumers are started cold: with `topicSetup: 'create'`, two of them at the same moment too; with 'verify'; and
 * with 'create' where the cluster does not let us.
 * Then the topics are made as they should be and the first start already works; or the start fails with one error that
 * lists every topic and its mend, and leaves no topic, no member and no connection behind.
 */
import { expect, it } from 'vitest'
import { isRetrylineError, RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import type { Scene } from '../contract/scene'

const SCHEDULE = ['200ms', '400ms']

export function r64(given: Given): void {
  const during = <T>(work: Promise<T>): Promise<T> => given.stage().during(work)

  /** A scene of its own for the group; the main topic stands beside it, without its retry topics. */
  async function cold(): Promise<{ scene: Scene; main: string; all: string[] }> {
    const scene = await given.scene({ schedule: [] })
    const main = given.stage().unique('cold')
    await given.stage().createTopics({ [main]: 5 })
    return { scene, main, all: [...SCHEDULE.map((delay) => `${main}.retry.${delay}`), `${main}.dlq`] }
  }

  async function topicsOf(main: string): Promise<string[]> {
    const admin = (given.stage().client() as any).admin()
    await during(admin.connect())
    const all: string[] = await during(admin.listTopics())
    await during(admin.disconnect())
    return all.filter((name) => name.startsWith(main)).sort()
  }

  it('R64 P10: two cold starts at once: made once, with the main topic’s partitions, and at work', async () => {
    const { scene, main, all } = await cold()
    const act = ({ attempt }: { attempt: number }): void => {
      if (attempt < 3) throw new RetryableError('not yet')
    }
    const options = { topic: main, schedule: SCHEDULE, topicSetup: 'create' }
    const members = [scene.member(act, options), scene.member(act, options)]
    await during(Promise.all(members.map(({ consumer }) => consumer.start())))
    for (const topic of all) expect((await given.stage().ends(topic)).size, topic).toBe(5)
    await given.stage().produce(main, 4, [{ value: 'a' }])
    await scene.untilCalls(1, ({ attempt }) => attempt === 3)
    expect(scene.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    for (const { hooks } of members) expect(hooks.counts.crashed).toBe(0)
  })

  it("R64 P10: 'verify': one error that names each missing topic and the command that makes it", async () => {
    const { scene, main, all } = await cold()
    const member = scene.member(undefined, { topic: main, schedule: SCHEDULE, topicSetup: 'verify' })
    const error: unknown = await during(member.consumer.start().catch((caught: unknown) => caught))
    if (!isRetrylineError(error, 'RETRYLINE_TOPICS')) throw error
    expect(error.problems).toHaveLength(all.length)
    for (const topic of all) {
      const own = error.problems.filter((line) => line.startsWith(`${topic} (`))
      expect(own, topic).toEqual([expect.stringMatching(/does not exist.*--create --topic .* --partitions 5 /)])
    }
    expect(await topicsOf(main)).toEqual([main])
    expect(member.consumer.health().status).toBe('stopped')
    expect(await given.stage().members(scene.group)).toEqual([])
  })

  it("R64 P10: 'create' where the cluster does not allow it: the start fails, and says what and why", async () => {
    const { scene, main } = await cold()
    const denied = Object.assign(new Error('The client is not authorized to access this topic'), {
      name: 'KafkaJSProtocolError',
      type: 'TOPIC_AUTHORIZATION_FAILED',
    })
    const member = scene.member(undefined, { topic: main, schedule: SCHEDULE, topicSetup: 'create' })
    member.faults.bend('admin.createTopics', () => Promise.reject(denied))
    const error: unknown = await during(member.consumer.start().catch((caught: unknown) => caught))
    if (!isRetrylineError(error)) throw error
    expect(['RETRYLINE_TOPICS', 'RETRYLINE_CONNECT']).toContain(error.code)
    expect(error.message).toMatch(/may not Create topic/)
    expect(error.message).toContain(`${main}.retry.200ms`)
    expect(await topicsOf(main)).toEqual([main])
    expect(member.consumer.health().status).toBe('stopped')
    expect(await given.stage().members(scene.group)).toEqual([])
  })
}
