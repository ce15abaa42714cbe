import { Kafka, logLevel } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import { createResilientConsumer, isRetrylineError, type RetrylineError } from '../../src'
import { freePort } from '../helpers/broker-ports'
import { describeWithBroker, unique } from '../helpers/broker-shared'
import { startProxy } from '../helpers/proxy'
import { runtimePromises } from './p13-runtime'
import { describeOn } from './promises'
import { realStage } from './stage-real'

const nothing = (): void => undefined
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

describeWithBroker('P13 on a real broker', ({ brokers }) => {
  describeOn('run time', () => realStage(brokers), runtimePromises)

  describe('P13 bad input: a broker that cannot be used', () => {
    const retry = { initialRetryTime: 50, maxRetryTime: 200, retries: 2 }
    const common = { clientId: 'bad', logLevel: logLevel.NOTHING, retry, connectionTimeout: 1_000 }

    async function refusal(kafka: Kafka): Promise<RetrylineError> {
      const consumer = createResilientConsumer({
        kafka,
        groupId: unique('billing'),
        topic: 'orders',
        schedule: ['1m'],
        logger,
        handler: nothing,
      })
      const error: unknown = await consumer.start().catch((caught: unknown) => caught)
      expect(consumer.health().status).toBe('stopped')
      if (isRetrylineError(error, 'RETRYLINE_CONNECT')) return error
      throw error
    }

    it('a port where nobody listens', async () => {
      const port = await freePort()
      const { message, cause } = await refusal(new Kafka({ ...common, brokers: [`127.0.0.1:${port}`] }))
      expect(message).toMatch(/kafkajs could not connect \(.*ECONNREFUSED.*check the brokers/)
      expect(cause).toBeInstanceOf(Error)
    })

    it('a host that takes connections and resets them', async () => {
      const proxy = await startProxy()
      proxy.cut()
      const { message } = await refusal(new Kafka({ ...common, brokers: [`127.0.0.1:${proxy.port}`] }))
      expect(message).toMatch(/kafkajs could not connect \(/)
      await proxy.stop()
    })

    it('a host that takes connections and never says a word', async () => {
      const proxy = await startProxy({ to: Number(brokers[0]?.split(':')[1]) })
      proxy.hold()
      const options = { ...common, requestTimeout: 500, authenticationTimeout: 500 }
      const { message } = await refusal(new Kafka({ ...options, brokers: [`127.0.0.1:${proxy.port}`] }))
      expect(message).toMatch(/\(.+\); check .*brokers.* ssl and sasl/)
      await proxy.stop()
    })

    it('credentials for a listener that takes none', async () => {
      const sasl = { mechanism: 'plain' as const, username: 'me', password: 'do-not-tell' }
      const { message } = await refusal(new Kafka({ ...common, brokers: [...brokers], sasl }))
      expect(message).toMatch(/kafkajs could not connect \(.*sasl/i)
      expect(message).not.toContain('do-not-tell')
    })

    it('TLS where there is none', async () => {
      const { message } = await refusal(new Kafka({ ...common, brokers: [...brokers], ssl: true }))
      expect(message).toMatch(/kafkajs could not connect \(.*the listener does not speak TLS; give brokers the port/)
    })
  })
})
