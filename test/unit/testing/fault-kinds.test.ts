import { describe, expect, it } from 'vitest'
import { createFakeKafka, type FakeKafka, type RequestKind } from '../../../src/testing'

/** What asks for one request of a kind, and how to see that the broker did it. */
interface Asking {
  /** Resolves when the client has what it asked for. */
  ask(): Promise<unknown>
  done?(): boolean
}

const kafkaOf = (): FakeKafka => createFakeKafka({ topics: { orders: 1 }, retry: { retries: 0 } })

async function adminOf(kafka: FakeKafka) {
  const admin = kafka.admin({ retry: { retries: 0 } })
  await admin.connect()
  await admin.fetchTopicMetadata({ topics: ['orders'] })
  return admin
}

const CLIENTS: Partial<Record<RequestKind, (kafka: FakeKafka) => Promise<Asking>>> = {
  async publish(kafka) {
    const producer = kafka.producer({ retry: { retries: 0 } })
    await producer.connect()
    return {
      ask: () => producer.send({ topic: 'orders', messages: [{ value: 'x' }] }),
      done: () => kafka.records('orders').length === 1,
    }
  },
  async commit(kafka) {
    const admin = await adminOf(kafka)
    return {
      ask: () => admin.setOffsets({ groupId: 'g', topic: 'orders', partitions: [{ partition: 0, offset: '7' }] }),
      done: () => kafka.committed('g', 'orders').get(0)?.offset === 7n,
    }
  },
  async metadata(kafka) {
    const admin = await adminOf(kafka)
    return { ask: () => admin.fetchTopicMetadata({ topics: ['orders'] }) }
  },
  async coordinator(kafka) {
    const admin = await adminOf(kafka)
    return { ask: () => admin.describeGroups(['g']) }
  },
  async offsets(kafka) {
    const admin = await adminOf(kafka)
    return { ask: () => admin.fetchOffsets({ groupId: 'g', topics: ['orders'] }) }
  },
  async positions(kafka) {
    const admin = await adminOf(kafka)
    return { ask: () => admin.fetchTopicOffsets('orders') }
  },
  async admin(kafka) {
    const admin = await adminOf(kafka)
    return {
      ask: () => admin.createTopics({ topics: [{ topic: 'new' }] }),
      done: () => kafka.records('new').length === 0,
    }
  },
}

/** A consumer that is led to each of its requests: to be caught is all that its owner can see of most. */
const CONSUMERS: Partial<Record<RequestKind, (kafka: FakeKafka, consumer: Consumer) => unknown>> = {
  join: () => undefined,
  sync: () => undefined,
  fetch: () => undefined,
  heartbeat: (kafka) => kafka.broker.rebalance('g'),
  leave: (_, consumer) => void consumer.disconnect(),
}

type Consumer = ReturnType<FakeKafka['consumer']>

describe.each(Object.entries(CLIENTS))('%s', (kind, prepare) => {
  it('fail: the client is told, and nothing was done', async () => {
    const kafka = kafkaOf()
    const { ask, done } = await prepare(kafka)
    kafka.broker.next(kind as RequestKind).fail('INVALID_REQUEST')
    const failing = ask().then(
      () => 'went well',
      (e: Error & { type?: string }) => e,
    )
    await kafka.clock.advance('1m')
    // kafkajs does not hear why a node does not tell the coordinator.
    const expected = kind === 'coordinator' ? { name: /Coordinator|Retries/ } : { message: /malformed|INVALID_REQUEST/ }
    for (const [field, pattern] of Object.entries(expected)) {
      expect((await failing) as unknown as Record<string, unknown>).toHaveProperty(
        field,
        expect.stringMatching(pattern),
      )
    }
    if (done !== undefined) expect(() => expect(done()).toBe(true)).toThrow()
    expect(await ask()).not.toBeInstanceOf(Error)
  })

  it('hold: nothing happens until it is released', async () => {
    const kafka = kafkaOf()
    const { ask, done } = await prepare(kafka)
    const held = kafka.broker.next(kind as RequestKind).hold()
    let over = false
    const asking = ask().finally(() => (over = true))
    await held.caught
    await kafka.clock.advance('10s')
    expect(over).toBe(false)
    held.release()
    await asking
    if (done !== undefined) expect(done()).toBe(true)
  })

  it('drop: done, and the answer is lost with the connection', async () => {
    const kafka = kafkaOf()
    const { ask, done } = await prepare(kafka)
    kafka.broker.next(kind as RequestKind).drop()
    const failing = ask().then(
      () => 'went well',
      (e: Error) => e.message,
    )
    await kafka.clock.advance('1m')
    expect(await failing).toMatch(kind === 'coordinator' ? /coordinator/ : /Closed connection/)
    if (done !== undefined) expect(done()).toBe(true)
  })
})

describe.each(Object.entries(CONSUMERS))('%s of a consumer', (kind, lead) => {
  it.each(['hold', 'fail', 'drop'] as const)('%s, and it goes on by itself', async (what) => {
    const kafka = kafkaOf()
    const consumer = kafka.client({ retry: { retries: 5 } }).consumer({ groupId: 'g', sessionTimeout: 10_000 })
    const seen: string[] = []
    const fault = kafka.broker.next(kind as RequestKind)
    const held = what === 'hold' ? fault.hold() : undefined
    if (what === 'fail') fault.fail('CONNECTION_CLOSED')
    if (what === 'drop') fault.drop()
    kafka.produce('orders', { value: 'x' })
    await consumer.connect()
    await consumer.subscribe({ topic: 'orders', fromBeginning: true })
    const running = consumer.run({ eachMessage: async ({ message }) => void seen.push(String(message.value)) })
    running.catch(() => undefined)
    if (kind === 'leave' || kind === 'heartbeat') await running
    await kafka.clock.settle()
    lead(kafka, consumer)
    if (held !== undefined) {
      await held.caught
      held.release()
    }
    await kafka.clock.advance('2m')
    if (kind === 'leave') {
      expect(kafka.broker.members('g')).toEqual([])
      return
    }
    kafka.produce('orders', { value: 'y' })
    await kafka.clock.advance('1m')
    expect([...new Set(seen)]).toEqual(['x', 'y'])
    await consumer.disconnect()
  })
})
