/** TLS, SASL and permissions, on a broker that has all three and allows nobody what it was not told to. */
import type { KafkaConfig, SASLOptions } from 'kafkajs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ForbiddenError } from '../../../src'
import { accessOf, buildTopology } from '../../../src/topology'
import { startSecuredBroker, type SecuredBroker } from '../../helpers/broker-secured'
import { describeWithOwnBrokers } from '../../helpers/broker-shared'
import { needed, openJob, quick, type Job, type JobOptions } from './job'
import { besideAConsumer, key, NAMES } from './role-tests'

const PASSWORD = 'correct-horse'
const BILLING = 'User:billing'

let broker: SecuredBroker
const open: Job[] = []

async function job(client: KafkaConfig, options?: JobOptions): Promise<Job> {
  const made = await openJob(broker, quick(client), options)
  open.push(made)
  return made
}

const scram = (more: Partial<KafkaConfig> = {}, password = PASSWORD, username = 'billing'): KafkaConfig => ({
  brokers: [broker.saslSsl],
  ssl: { ca: [broker.ca] },
  sasl: { mechanism: 'scram-sha-512', username, password },
  ...more,
})

const refusal = async ({ consumer }: Job): Promise<ForbiddenError> =>
  consumer.start().then(
    () => Promise.reject(new Error('the start was not refused')),
    (error: unknown) => error as ForbiddenError,
  )

describeWithOwnBrokers('secured brokers', () => {
  beforeAll(async () => {
    broker = await startSecuredBroker({
      users: { billing: PASSWORD, passing: PASSWORD, replayer: PASSWORD, monitor: PASSWORD },
    })
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map(({ consumer }) => consumer.stop({ timeout: '5s' })))
  })
  afterAll(() => broker.stop())

  const works = async (one: Job): Promise<void> => {
    await one.consumer.start()
    await one.produce('bad', 'good')
    await one.untilDead(1)
    expect(one.calls.filter((value) => value === 'bad')).toHaveLength(3)
    expect(one.calls).toContain('good')
    expect(one.consumer.health()).toMatchObject({ status: 'ok', problems: [] })
    expect(one.hooks.events('problem')).toEqual([])
  }

  it('TLS, with a certificate of the client', async () => {
    const { pfx, passphrase, principal } = broker.client
    const one = await job({ brokers: [broker.tls], ssl: { ca: [broker.ca], pfx, passphrase } })
    await broker.allow(principal, needed(one.access, 'verify'))
    await works(one)
  })

  it.each(['scram-sha-256', 'scram-sha-512'] as const)('TLS and %s', async (mechanism) => {
    const one = await job(scram({ sasl: { mechanism, username: 'billing', password: PASSWORD } as SASLOptions }))
    await broker.allow(BILLING, needed(one.access, 'verify'))
    await works(one)
  })

  it.each<[string, () => KafkaConfig, RegExp]>([
    ['a wrong password', () => scram({}, 'wrong'), /does not accept the user name or the password; mend sasl/],
    ['a user that is not there', () => scram({}, PASSWORD, 'nobody'), /does not accept the user name or the password/],
    [
      'a mechanism that is not offered',
      () => scram({ sasl: { mechanism: 'plain', username: 'billing', password: PASSWORD } }),
      /does not offer this mechanism; give sasl\.mechanism/,
    ],
    ['a certificate that nobody here knows', () => scram({ ssl: true }), /certificate is not trusted here; .*ssl\.ca/],
    [
      'the certificate of somebody else',
      () => scram({ ssl: { ca: [broker.foreignCa] } }),
      /not trusted here; .*ssl\.ca/,
    ],
    [
      'a certificate for another name',
      () => scram({ ssl: { ca: [broker.ca], servername: 'kafka.example.com' } }),
      /certificate is for another name; .*ssl\.servername/,
    ],
    [
      'no certificate where the broker wants one',
      () => ({ brokers: [broker.tls], ssl: { ca: [broker.ca] } }),
      /asks for a certificate of the client.*ssl\.cert and ssl\.key/,
    ],
    [
      'the listener wants TLS',
      () => ({ brokers: [broker.saslSsl] }),
      /its listener wants TLS or SASL; set ssl or sasl/,
    ],
    [
      'the listener wants SASL',
      () => ({ brokers: [broker.saslSsl], ssl: { ca: [broker.ca] } }),
      /its listener wants TLS or SASL; set ssl or sasl/,
    ],
    [
      'the listener has no TLS',
      () => scram({ brokers: [broker.saslPlain] }),
      /does not speak TLS; give brokers the port/,
    ],
    [
      'the listener has no SASL',
      () => scram({ brokers: [broker.tls], ssl: { ca: [broker.ca], ...withCertificate() } }),
      /takes no SASL; give brokers the port/,
    ],
  ])('P13: start() fails with one clear error: %s', async (_, client, said) => {
    const error = await refusal(await job(client()))
    expect(error.code).toBe('RETRYLINE_CONNECT')
    expect(error.message).toMatch(said)
    expect(error.message).not.toContain(PASSWORD)
  })
  const withCertificate = (): object => ({ pfx: broker.client.pfx, passphrase: broker.client.passphrase })

  it('a password that is revoked in mid-run: health says so, and a stop still ends', async () => {
    // The broker asks for it anew every 12 s; kafkajs would do so 10 s before.
    const one = await job(scram({ reauthenticationThreshold: 11_000 }, PASSWORD, 'passing'))
    await broker.allow('User:passing', needed(one.access, 'verify'))
    await works(one)
    await broker.revokeUser('passing')
    await one.until(() => /health: group .* has crashed: .*authentication failed/i.test(one.said()))
    expect(one.consumer.health().status).toBe('degraded')
    expect(one.hooks.events('crashed').length).toBeGreaterThan(0)
  })

  it.each(['verify', 'create', 'warn'] as const)('the least that is allowed is enough: %s', async (topicSetup) => {
    const one = await job(scram(), { topicSetup })
    await broker.allow(BILLING, needed(one.access, topicSetup))
    if (topicSetup === 'warn') {
      await one.consumer.start()
      await one.produce('bad')
      await one.untilDead(1)
    } else await works(one)
  })

  it('the least that is allowed is enough: exactly-once', async () => {
    const one = await job(scram(), { delivery: 'exactly-once' })
    await broker.allow(BILLING, needed(one.access, 'verify', 'exactly-once'))
    await works(one)
  })

  const lines = accessOf(NAMES, 'consumer')

  it.each(lines.map((line, i) => [key(line), i] as const))('each of it is needed: %s', async (_, i) => {
    const topicSetup = lines[i]!.when === 'create' ? 'create' : 'verify'
    const delivery = lines[i]!.when === 'exactly-once' ? 'exactly-once' : 'at-least-once'
    const one = await job(scram(), { topicSetup, delivery })
    const missing = one.access[i]!
    await broker.allow(
      BILLING,
      needed(one.access, topicSetup, delivery).filter((access) => access !== missing),
    )
    await one.produce('bad')
    const told = (text: string): boolean =>
      text.split('\n').some((line) => [BILLING, missing.operation, missing.name].every((part) => line.includes(part)))
    const error = await one.consumer.start().then(
      () => undefined,
      (caught: unknown) => caught as ForbiddenError,
    )
    if (error === undefined) {
      // The first to tell may be a commit; health knows once the group has crashed, or its copies wait.
      await one.until(() => told(one.consumer.health().problems.join('\n')))
      expect(told(one.said())).toBe(true)
      expect(one.consumer.health().status).toBe('degraded')
    } else {
      expect(['RETRYLINE_TOPICS', 'RETRYLINE_FORBIDDEN']).toContain(error.code)
      expect(error.message).toSatisfy(told)
      // Ids are many, and partitions come and go: they are allowed together.
      if (delivery === 'exactly-once')
        expect(error.command).toMatch(/-id billing-\S+\/ --resource-pattern-type prefixed$/)
      expect(error.message).toMatch(/kafka-acls\.sh .*--add --allow-principal User:billing --operation /)
    }
    // What the message says is enough to mend it, and nothing was lost meanwhile.
    await broker.allow(BILLING, [missing])
    const again = error === undefined ? one : await job(scram(), { topicSetup, delivery, ...sameNames(one) })
    if (again !== one) await again.consumer.start()
    await one.untilDead(1)
  })

  it('each of it is needed: Describe on a former group', async () => {
    const former = `former-${Date.now()}`
    const one = await job(scram(), { formerGroupIds: [former] })
    await broker.allow(BILLING, needed(one.access, 'verify'))
    await one.consumer.start()
    await one.produce('bad')
    await one.until(() =>
      one.hooks
        .events('problem')
        .some(({ error }) => error.includes(`${BILLING} may not Describe group '${former}.retry.100ms'`)),
    )
    const topology = buildTopology({ topics: ['orders'], groupId: 'billing', delays: [100], formerGroupIds: [former] })
    await broker.allow(
      BILLING,
      accessOf(topology, 'consumer').filter(({ when }) => when === 'formerGroupIds'),
    )
    await one.untilDead(1)
  })

  it('taken away in mid-run and given back: told by name, then it goes on, and nothing is lost', async () => {
    const one = await job(scram())
    await broker.allow(BILLING, needed(one.access, 'verify'))
    await works(one)
    const some = one.access.filter(({ operation, resourceType }) => operation === 'Read' && resourceType === 'group')
    const writing = one.access.filter(({ operation }) => operation === 'Write')
    for (const [list, what, value] of [
      [some, /health: group .* has crashed: ForbiddenError: User:billing may not Read group 'billing/, 'bad-1'],
      [
        writing,
        /health: copies to orders\S+ cannot be published: ForbiddenError: User:billing may not Write topic 'orders/,
        'bad-2',
      ],
    ] as const) {
      await broker.withdraw(BILLING, list)
      await one.produce(value)
      await one.until(() => what.test(one.said()))
      await broker.allow(BILLING, list)
      await one.until(() => one.consumer.health().status === 'ok')
    }
    // Each has come to the end of its attempts, on either side of a crash.
    await one.untilDead(3)
    const count = (value: string): number => one.calls.filter((call) => call === value).length
    await one.until(() => ['bad', 'bad-1', 'bad-2'].every((value) => count(value) >= 3))
  })

  describe.each(['replayer', 'monitor'] as const)('a %s', (role) => {
    besideAConsumer(role, () => broker, scram)
  })
})

function sameNames({ topology }: Job): { topic: string; groupId: string } {
  return { topic: topology.topics[0]!, groupId: topology.groupId }
}
