/**
 * R56: a producer that does not come back.
 * Given a broker that closes idle connections, and that is stopped, cut off or falls silent between a failure and its copy.
 * When the copy's producer has been idle past the limit; when the broker comes back; when the consumer is stopped while the
 * copy's request is unanswered.
 * Then the next publish goes through after a reconnect, until then the offset holds and the health says so, and the stop
 * ends in its time with nothing left behind and nothing lost.
 */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { RetryableError } from '../../src'
import { Scene, type Member } from '../contract/scene'
import type { Stage } from '../contract/stage'
import { realStage } from '../contract/stage-real'
import { startBroker, type Broker } from '../helpers/broker'
import { describeWithOwnBrokers } from '../helpers/broker-shared'

const IDLE_LIMIT_MS = 1_500
/** After a restart the broker waits so long for members that it knew and that are gone. */
const SESSION = { sessionTimeout: 1_000, heartbeatInterval: 200, rebalanceTimeout: '5s' }

describeWithOwnBrokers('3 crash loops and storms: connections that end', () => {
  let broker: Broker
  let stage: Stage
  let scene: Scene | undefined
  beforeAll(async () => {
    broker = await startBroker({ proxied: true, config: { 'connections.max.idle.ms': IDLE_LIMIT_MS } })
    stage = await realStage(broker.brokers)
  })
  afterEach(async () => {
    broker.proxy().restore()
    await scene?.close()
  })
  afterAll(async () => {
    await stage.close()
    await broker.stop()
  })

  const partition = (member: Member) => member.consumer.health().groups[0]?.partitions[0]

  it('R56 P1: a producer that was idle past the limit publishes at once', async ({ annotate }) => {
    scene = await Scene.open(stage)
    const member = await scene.join(({ value, attempt }) => {
      if (value === 'bad' && attempt === 1) throw new RetryableError('not now')
    })
    await scene.produce(['bad'])
    await scene.untilDone()
    const before = broker.proxy().connections
    await stage.takes(2 * IDLE_LIMIT_MS)
    // The broker has closed what nobody used; the consumers' connections are busy with fetches.
    expect(broker.proxy().connections).toBeLessThan(before)
    await scene.produce(['bad'])
    await scene.untilDone()
    expect(scene.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 1, 2])
    const [, , failed, again] = scene.calls
    const took = again!.startedAt - failed!.endedAt!
    await annotate(`the second attempt came after ${took} ms, ${member.hooks.counts.publishFailed} tries failed`)
    expect(took).toBeLessThan(3_000)
    expect(member.hooks.counts.crashed).toBe(0)
  })

  it('R56 P1 P12: the broker stops between the failure and its copy, and comes back', { timeout: 90_000 }, async () => {
    scene = await Scene.open(stage)
    let stopped: Promise<void> | undefined
    const member = await scene.join(async ({ attempt }) => {
      if (attempt > 1) return
      stopped ??= broker.stopNode()
      await stopped
      throw new RetryableError('not now')
    }, SESSION)
    await stage.until(() => partition(member)?.committed === '0', 'where it begins is committed')
    await scene.produce(['a', 'b'])
    await stage.until(() => stopped !== undefined, 'the handler takes the broker away')
    await stopped
    // By the copy that cannot be published, or by a group that cannot fetch, whichever is noticed first.
    await stage.until(() => member.consumer.health().status === 'degraded', 'the health says so')
    await stage.takes(1_000)
    expect(member.hooks.counts.retried).toBe(0)
    expect(scene.commits().map(({ offset }) => offset)).toEqual([0n])
    await broker.startNode()
    await scene.untilDone()
    await stage.until(() => member.consumer.health().status === 'ok', 'it is well again')
    const handled = scene.calls.filter(({ attempt }) => attempt === 2).map(({ value }) => value)
    expect(new Set(handled)).toEqual(new Set(['a', 'b']))
    expect(await scene.dead()).toEqual([])
  })

  it('R56 P9: a stop while the copy’s request is unanswered ends in its time', { timeout: 90_000 }, async () => {
    scene = await Scene.open(stage)
    const before = broker.proxy().connections
    const member = await scene.join(({ attempt }) => {
      if (attempt > 1) return
      broker.proxy().hold()
      throw new RetryableError('not now')
    })
    await scene.produce(['a'])
    await scene.untilCalls(1)
    const startedAt = Date.now()
    await member.consumer.stop({ timeout: '1s' })
    // The time given, the time for last commits, and that for leaving.
    expect(Date.now() - startedAt).toBeLessThan(1_000 + 3_000 + 2_000 + 2_000)
    broker.proxy().restore()
    await stage.until(() => member.consumer.health().status === 'stopped', 'everything has ended')
    await stage.until(() => broker.proxy().connections <= before, 'its connections are closed')
    await scene.join()
    await scene.untilDone()
    // The copy may have got through at last: then it is handled too, and the record once more.
    expect(scene.calls.filter(({ member: by }) => by === 1).length).toBeGreaterThan(0)
    expect(await scene.dead()).toEqual([])
  })
})
