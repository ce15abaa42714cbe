/**
 * R68: too many consumers.
 * Given three topics and three waits.
 * When one consumer is started, and a second process beside it.
 * Then each has one kafkajs consumer for all main topics and one for each distinct wait, one producer and at most two admin
 * clients, so four members in all, and as many connections as docs/operations.md says; more topics cost no more of them.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'

const SCHEDULE = ['200ms', '400ms', '600ms']

/** Sockets of this process. */
const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length

/** Connections of one member, as the page says it, on one broker. */
function documented(): number {
  const page = readFileSync(resolve(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  const found = /three waits[^.]*?(\d+) connections/.exec(page.replaceAll('\n', ' '))
  return Number(found?.[1])
}

export function r68(given: Given): void {
  it.each([1, 3])('R68: %i topics and three waits: four consumers and members, whatever the topics', async (count) => {
    const stage = given.stage()
    const scene = await given.scene({ schedule: SCHEDULE })
    const topics = [scene.topic]
    while (topics.length < count) topics.push(stage.unique('more'))
    await stage.createTopics(Object.fromEntries(topics.slice(1).map((topic) => [topic, 2])))
    const member = scene.member(undefined, { topic: topics, topicSetup: 'create' })
    await stage.during(member.consumer.start())
    const { faults } = member
    expect(faults.calls('consumer').map(({ args }) => args[0].groupId)).toEqual([
      scene.group,
      ...SCHEDULE.map((delay) => scene.retryGroup(delay)),
    ])
    expect(faults.calls('producer')).toHaveLength(1)
    expect(faults.calls('admin').length).toBeLessThanOrEqual(2)
    const groups = [scene.group, ...SCHEDULE.map((delay) => scene.retryGroup(delay))]
    for (const group of groups) expect(await stage.members(group), group).toHaveLength(1)
    // Every topic has its tiers in these, and they work.
    for (const topic of topics) await stage.produce(topic, 0, [{ value: 'a' }])
    await scene.untilCalls(count)
    await scene.join(undefined, { topic: topics })
    for (const group of groups) expect(await stage.members(group), group).toHaveLength(2)
  })

  it('R68: as many connections as docs/operations.md says', async () => {
    const stage = given.stage()
    const scene = await given.scene({ schedule: SCHEDULE })
    const before = sockets()
    const { consumer } = await scene.join(() => {
      throw new RetryableError('not now')
    })
    // Through every tier and to the dead letter topic: every client has done what it is there for.
    await scene.produce(['a'])
    await scene.untilDone()
    if (stage.kind === 'real') expect(sockets() - before).toBe(documented())
    else expect(sockets() - before).toBe(0)
    await stage.during(consumer.stop())
    await stage.until(() => sockets() === before, 'all of them are closed')
  })
}
