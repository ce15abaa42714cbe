import { Kafka, logLevel, type KafkaConfig } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import type { ForbiddenError } from '../../../../src'
import { createDenials, type Asked } from '../../../../src/adapters/kafkajs/denied'
import type { KafkaJsLike } from '../../../../src/adapters/kafkajs'
import { explainConnect } from '../../../../src/adapters/kafkajs/connect-error'

const refused = (type: string): Error => Object.assign(new Error('Not authorized'), { type })
const READ: Asked = { operation: 'Read', resourceType: 'topic', names: ['orders'] }
const real = (config: Partial<KafkaConfig>): KafkaJsLike =>
  new Kafka({ brokers: ['127.0.0.1:1'], logLevel: logLevel.NOTHING, ...config })
const nobody = {
  consumer() {
    throw new Error('not now')
  },
} as unknown as KafkaJsLike

describe('a refusal', () => {
  it.each<[string, Partial<KafkaConfig>, string | undefined]>([
    ['SASL', { sasl: { mechanism: 'plain', username: 'billing', password: 'secret' }, ssl: true }, 'User:billing'],
    ['TLS alone', { ssl: true }, undefined],
    ['neither', {}, 'User:ANONYMOUS'],
    [
      'SASL without a user name',
      { sasl: { mechanism: 'oauthbearer', oauthBearerProvider: () => Promise.resolve({ value: 'token' }) } },
      undefined,
    ],
  ])('names whom the settings of a kafkajs client name: %s', async (_, config, principal) => {
    const error = (await createDenials(real(config)).explain(refused('TOPIC_AUTHORIZATION_FAILED'), [
      READ,
    ])) as ForbiddenError
    expect(error).toMatchObject({ code: 'RETRYLINE_FORBIDDEN', principal, resources: ['orders'], operation: 'Read' })
    expect(error.message).toContain(`${principal ?? "the client's principal"} may not Read topic 'orders'; allow it: `)
    expect(error.message).not.toContain('secret')
  })

  it('asks the brokers of nobody, and connects to none', async () => {
    let asked = 0
    const brokers = (): string[] => {
      asked++
      return ['127.0.0.1:1']
    }
    await createDenials(real({ brokers })).explain(refused('TOPIC_AUTHORIZATION_FAILED'), [READ])
    expect(asked).toBe(0)
  })

  it('is told of the resource that was refused, found behind what kafkajs wraps or gathers', async () => {
    const { explain } = createDenials(nobody)
    const group: Asked = { operation: 'Read', resourceType: 'group', names: ['billing'] }
    const wrapped = Object.assign(new Error('retries'), { cause: refused('GROUP_AUTHORIZATION_FAILED') })
    expect(await explain(wrapped, [READ, group])).toMatchObject({ resourceType: 'group', cause: wrapped })
    const gathered = Object.assign(new Error('topics'), { errors: [refused('TOPIC_AUTHORIZATION_FAILED')] })
    expect(await explain(gathered, [READ, group])).toMatchObject({ resourceType: 'topic', cause: gathered })
    const id: Asked = { operation: 'Write', resourceType: 'transactional-id', names: ['a', 'b', 'c', 'd', 'e'] }
    expect(await explain(refused('TRANSACTIONAL_ID_AUTHORIZATION_FAILED'), [id])).toMatchObject({
      message: expect.stringContaining("may not Write transactional id 'a' or 'b' or 'c' or 2 more; ") as string,
      command: expect.stringMatching(/--transactional-id a --transactional-id b .* --transactional-id e$/) as string,
    })
    const ours = { ...id, names: ['billing/orders/0', 'billing/orders/1'] }
    expect(await explain(refused('TRANSACTIONAL_ID_AUTHORIZATION_FAILED'), [ours])).toMatchObject({
      resources: ours.names,
      command: expect.stringMatching(
        /--operation Write --transactional-id billing\/ --resource-pattern-type prefixed$/,
      ) as string,
    })
  })

  it('everything else is left as it is', async () => {
    const { explain } = createDenials(nobody)
    for (const error of [refused('UNKNOWN_TOPIC_OR_PARTITION'), new Error('x'), null, 'text']) {
      expect(await explain(error, [READ])).toBe(error)
    }
    // Nobody asked for a group here, so nothing can be said of one.
    const group = refused('GROUP_AUTHORIZATION_FAILED')
    expect(await explain(group, [READ])).toBe(group)
    const lost = Object.assign(new Error('lost'), { name: 'KafkaJSGroupCoordinatorNotFound' })
    // Nor can a node be asked why, where there is none.
    expect(await explain(lost, [READ])).toBe(lost)
    expect(await explain(lost, [READ, { operation: 'Read', resourceType: 'group', names: ['billing'] }])).toBe(lost)
  })
})

describe('what an error of a connection means', () => {
  it('is found behind retries; a real broker is asked in test/broker/secured', () => {
    const cause = Object.assign(new Error('x'), { code: 'CERT_HAS_EXPIRED' })
    expect(explainConnect(Object.assign(new Error('retries'), { cause }))).toMatch(/has expired; renew it/)
    expect(explainConnect({ name: 'KafkaJSConnectionError', code: 'ERR_SSL_WRONG_VERSION_NUMBER' })).toMatch(
      /not speak TLS/,
    )
    expect(explainConnect({ code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED' })).toMatch(/certificate of the client/)
  })

  it('nothing is made up where settings have no part in it', () => {
    for (const error of [undefined, null, 'x', new Error('x'), { code: 'ECONNREFUSED' }, { code: 'ECONNRESET' }]) {
      expect(explainConnect(error)).toBeUndefined()
    }
  })
})
