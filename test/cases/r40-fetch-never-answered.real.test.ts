/**
 * R40: a fetch that is never answered.
 * Given a running consumer, and a quota of the broker's for its client that is far below what it reads.
 * When the broker answers a fetch with nothing and asks for silence, for far longer than an idle fetch takes.
 * Then the consumer says that no fetch was answered, in its health and not only in the broker's metrics; a stop ends at
 * its time-out all the same, and without the quota the next consumer handles every record.
 */
import { Kafka, logLevel } from 'kafkajs'
import { expect, it } from 'vitest'
import { createResilientConsumer } from '../../src'
import { realStage } from '../contract/stage-real'
import { Wire } from '../contract/wire'
import { describeWithBroker, unique } from '../helpers/broker-shared'

const nothing = (): void => undefined
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

describeWithBroker('2 partitions that stop: a throttled client', ({ brokers }) => {
  it('R40 P12: a client that is throttled to a standstill says so', { timeout: 90_000 }, async ({ annotate }) => {
    const [clientId, topic, groupId] = [unique('client'), unique('orders'), unique('billing')]
    const stage = await realStage(brokers)
    await stage.createTopics({ [topic]: 1, [`${topic}.dlq`]: 1 })
    const [host = '', port = ''] = brokers[0]!.split(':')
    const wire = new Wire(host, Number(port))
    const values: string[] = []
    let sent = 1
    const make = (client: string) =>
      createResilientConsumer({
        kafka: new Kafka({ clientId: client, brokers, logLevel: logLevel.NOTHING }),
        groupId,
        topic,
        schedule: [],
        logger,
        // Throttled are also the heartbeats: they go over the same connection.
        sessionTimeout: '60s',
        // The throttled one finishes its stop in the background, and the next one need not wait for it.
        rebalanceTimeout: '2s',
        sameGroupInProcess: 'allow',
        handler: ({ message }) => void values.push(String(message.value).trim()),
      })
    const consumer = make(clientId)
    try {
      await consumer.start()
      await stage.produce(topic, 0, [{ value: 'r0' }])
      await stage.until(() => values.length === 1, 'the first record is handled')
      expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })

      await wire.limitFetches(clientId, 1_000)
      // A quota takes a moment to reach the broker; what is read until then is not counted.
      let sentAt = 0
      const sendSome = async (): Promise<void> => {
        if (Date.now() - sentAt < 3_000) return
        sentAt = Date.now()
        await stage.produce(topic, 0, [{ value: `r${sent++}${' '.repeat(100_000)}` }])
      }
      const throttledAt = Date.now()
      await stage.until(async () => {
        await sendSome()
        return consumer.health().status === 'degraded'
      }, 'the silence shows in the health')
      const noticedMs = Date.now() - throttledAt
      await annotate(`noticed after ${noticedMs} ms`)
      expect(consumer.health().problems).toEqual([`group ${groupId}: no fetch was answered for 10 s`])
      expect(noticedMs).toBeGreaterThan(9_000)
      expect(new Set(values).size, 'some are held back').toBeLessThan(sent)
    } finally {
      await wire.limitFetches(clientId, undefined)
      const stoppingAt = Date.now()
      const { abandoned } = await consumer.stop({ timeout: '1s' })
      const tookMs = Date.now() - stoppingAt
      await annotate(`stopped after ${tookMs} ms`)
      expect(abandoned).toEqual([])
      // Its own time-out, and 5 s for a broker that does not answer.
      expect(tookMs).toBeLessThan(10_000)
    }
    const next = make(unique('client'))
    await next.start()
    await stage.until(() => new Set(values).size === sent, 'the records that were held back are handled')
    await next.stop()
    wire.close()
    await stage.close()
  })
})
