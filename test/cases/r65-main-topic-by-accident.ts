/**
 * R65: a main topic made by accident.
 * Given a main topic that does not exist (a name with a typing error), alone or beside one that does.
 * When a consumer is started with `topicSetup: 'create'`.
 * Then the start is refused with a message that names it and how to make it, and neither it nor anything of its chain was
 * made, nor of the other's; once it is there the same start makes retry and dead letter topics and nothing else.
 */
import { expect, it } from 'vitest'
import { isRetrylineError } from '../../src'
import type { Given } from '../contract/promises'

export function r65(given: Given): void {
  const during = <T>(work: Promise<T>): Promise<T> => given.stage().during(work)

  async function topicsOf(names: readonly string[]): Promise<string[]> {
    const admin = (given.stage().client() as any).admin()
    await during(admin.connect())
    const all: string[] = await during(admin.listTopics())
    await during(admin.disconnect())
    return all.filter((name) => names.some((start) => name.startsWith(start))).sort()
  }

  it('R65 P10: refused, and nothing made; once it is there, only its chain', async () => {
    const stage = given.stage()
    const scene = await given.scene({ schedule: [] })
    const [typo, there] = [stage.unique('ordres'), stage.unique('there')]
    await stage.createTopics({ [there]: 2 }, { 'retention.ms': '3600000' })
    const options = { topic: [there, typo], schedule: ['200ms'], topicSetup: 'create' }
    const error: unknown = await during(
      scene
        .member(undefined, options)
        .consumer.start()
        .catch((caught: unknown) => caught),
    )
    if (!isRetrylineError(error, 'RETRYLINE_TOPICS')) throw error
    expect(error.problems.filter((line) => line.startsWith(`${typo} (main topic): does not exist`))).toHaveLength(1)
    expect(error.message).toMatch(new RegExp(`--create --topic ${typo}`))
    expect(await topicsOf([typo, there])).toEqual([there])

    await stage.createTopics({ [typo]: 3 })
    const { consumer } = await scene.join(undefined, options)
    const chain = [there, typo].flatMap((topic) => [topic, `${topic}.dlq`, `${topic}.retry.200ms`])
    expect(await topicsOf([typo, there])).toEqual(chain.sort())
    for (const topic of chain) expect((await stage.ends(topic)).size, topic).toBe(topic.startsWith(there) ? 2 : 3)
    // The main topic keeps the settings that it was made with.
    const admin = (stage.client() as any).admin()
    await during(admin.connect())
    const { resources } = await during<any>(
      admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: 2, name: there, configNames: ['retention.ms'] }],
      }),
    )
    await during(admin.disconnect())
    expect(resources[0].configEntries[0].configValue).toBe('3600000')
    await during(consumer.stop())
  })
}
