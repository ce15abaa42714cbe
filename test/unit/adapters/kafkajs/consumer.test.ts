import { describe, expect, test } from 'vitest'
import { createKafkajsConsumer } from '../../../../src/adapters/kafkajs/consumer'
import { silentLogger, type GroupListener } from '../../../../src/ports'
import { createTestClock } from '../../../helpers/test-clock'
import { isSettled } from '../../consume/given'
import { createStubKafka } from './stub'

const ENTRIES = [
  { topic: 'orders', partition: 0, offset: 2n ** 60n, metadata: '' },
  { topic: 'refunds', partition: 1, offset: 3n, metadata: 'm' },
]

function setUp(over: Partial<GroupListener> = {}) {
  const clock = createTestClock()
  const kafka = createStubKafka()
  const heard: string[] = []
  const listener: GroupListener = {
    assigned: ({ memberId, partitions }) =>
      heard.push(`assigned ${memberId} ${partitions.map(({ topic, partition }) => `${topic}/${partition}`).join(' ')}`),
    rebalancing: () => heard.push('rebalancing'),
    batch: ({ topic, partition, fetchedOffset, lastOffset }) =>
      void heard.push(`batch ${topic}/${partition} ${fetchedOffset}-${lastOffset}`),
    passed: ({ topic, partition }, first, next) => heard.push(`passed ${topic}/${partition} ${first} ${next}`),
    unreadable: ({ topic, partition }, offset, error, againInMs) =>
      heard.push(`unreadable ${topic}/${partition} ${offset} ${(error as Error).message}, again in ${againInMs}`),
    crashed: (error, restarting) => heard.push(`crashed ${(error as Error).message} ${restarting}`),
    restarted: () => heard.push('restarted'),
    fetched: () => heard.push('fetched'),
    problem: (where, error) => heard.push(`problem ${where}: ${(error as Error).message}`),
    ...over,
  }
  const consumer = createKafkajsConsumer(
    kafka,
    {
      groupId: 'billing',
      topics: ['orders', 'refunds'],
      sessionTimeoutMs: 30_000,
      heartbeatIntervalMs: 3_000,
      rebalanceTimeoutMs: 60_000,
      maxWaitMs: 200,
      maxBytes: 1_000,
      maxBytesPerPartition: 100,
      metadataMaxAgeMs: 60_000,
      concurrency: 8,
      tag: 'AbCd',
    },
    listener,
    () => Promise.resolve(new Map()),
    { clock, logger: silentLogger },
  )
  const stub = kafka.consumers[0]!
  return {
    clock,
    kafka,
    stub,
    heard,
    consumer,
    times: (name: string) => stub.calls.filter((call) => call === name).length,
    async running() {
      const started = consumer.start()
      await clock.settle()
      stub.join()
      await started
    },
  }
}

describe('rule 20: start', () => {
  test('resolves when run() has resolved and GROUP_JOIN came, in either order', async () => {
    for (const first of ['run', 'join'] as const) {
      const { consumer, stub, clock } = setUp()
      const run = stub.hold('run')
      const started = consumer.start()
      await clock.settle()
      if (first === 'run') run.resolve()
      else stub.join()
      expect(await isSettled(started)).toBe(false)
      if (first === 'run') stub.join()
      else run.resolve()
      await started
    }
  })

  test('rule 4: nothing may be committed before that', async () => {
    const { consumer, stub, clock } = setUp()
    const run = stub.hold('run')
    const started = consumer.start()
    await clock.settle()
    stub.join()
    expect(consumer.running).toBe(false)
    run.resolve()
    await started
    expect(consumer.running).toBe(true)
  })

  test('rule 1: no auto-commit, no auto-resolve, from the beginning; nothing is made by a typo', async () => {
    const { stub, running } = setUp()
    await running()
    expect(stub.calls).toEqual([
      'connect',
      'subscribe orders,refunds from beginning',
      'run config {"autoCommit":false,"eachBatchAutoResolve":false,"concurrency":8}',
      'run',
    ])
    expect(stub.config).toMatchObject({ groupId: 'billing', maxWaitTimeInMs: 200, allowAutoTopicCreation: false })
    expect(stub.config.partitionAssigners).toHaveLength(2)
  })

  test('rejects with the error where a step fails, and where the first join fails for good', async () => {
    for (const step of ['connect', 'run']) {
      const { consumer, stub } = setUp()
      stub.fail(step, new Error(`${step} failed`))
      await expect(consumer.start()).rejects.toThrow(`${step} failed`)
    }
    const { consumer, stub, clock, heard } = setUp()
    const started = consumer.start()
    await clock.settle()
    await stub.crash(new Error('not authorised'))
    await expect(started).rejects.toThrow('not authorised')
    expect(heard).toEqual(['crashed not authorised false'])
    expect(clock.timers).toBe(0)
  })

  test('goes on where the first join fails for a passing reason', async () => {
    const { consumer, stub, clock } = setUp()
    const started = consumer.start()
    await clock.settle()
    await stub.crash(new Error('coordinator is loading'), true)
    await clock.advance(500)
    expect(await isSettled(started)).toBe(false)
    stub.join()
    await started
    expect(consumer.running).toBe(true)
  })

  test('resolves though the listener throws at the assignment', async () => {
    const { running, heard } = setUp({
      assigned() {
        throw new Error('ours')
      },
    })
    await running()
    expect(heard).toEqual(['problem group join: ours'])
  })
})

describe('P9: stop in every state', () => {
  test('idle: nothing to do, and no start afterwards', async () => {
    const { consumer, stub } = setUp()
    await consumer.stop()
    await expect(consumer.start()).rejects.toThrow('was stopped before')
    expect(stub.calls).toEqual([])
  })

  test('connecting: ends the connect, goes no further, disconnects', async () => {
    const { consumer, stub, clock, times } = setUp()
    const connect = stub.hold('connect')
    const started = consumer.start()
    started.catch(() => undefined)
    await clock.settle()
    const stopped = consumer.stop()
    await clock.settle()
    expect(times('disconnect')).toBe(0)
    connect.resolve()
    await stopped
    await expect(started).rejects.toThrow('was stopped before')
    expect(stub.calls).toEqual(['connect', 'disconnect'])
    expect(clock.timers).toBe(0)
  })

  test('connecting without success: disconnects', async () => {
    const { consumer, stub, clock } = setUp()
    const connect = stub.hold('connect')
    const started = consumer.start()
    started.catch(() => undefined)
    const stopped = consumer.stop()
    connect.reject(new Error('nobody there'))
    await stopped
    await expect(started).rejects.toThrow('nobody there')
    expect(stub.calls).toEqual(['connect', 'disconnect'])
    expect(clock.timers).toBe(0)
  })

  test('during the join: waits for it, since a client that is stopped before joins all the same', async () => {
    const { consumer, stub, clock, times } = setUp()
    const run = stub.hold('run')
    const started = consumer.start()
    started.catch(() => undefined)
    await clock.settle()
    const stopped = consumer.stop()
    await clock.settle()
    expect(times('disconnect')).toBe(0)
    stub.join()
    run.resolve()
    await stopped
    expect(times('disconnect')).toBe(1)
    expect(consumer.running).toBe(false)
    expect(clock.timers).toBe(0)
  })

  test('running: disconnects; twice is once', async () => {
    const { consumer, running, times, clock } = setUp()
    await running()
    await Promise.all([consumer.stop(), consumer.stop()])
    await consumer.stop()
    expect(times('disconnect')).toBe(1)
    expect([consumer.running, clock.timers]).toEqual([false, 0])
  })

  test('crashed, with a restart pending: it never comes', async () => {
    const { consumer, running, stub, clock, times } = setUp()
    await running()
    await stub.crash(new Error('gone'))
    expect(clock.timers).toBe(1)
    await consumer.stop()
    await clock.advance(120_000)
    expect([times('connect'), times('disconnect'), clock.timers]).toEqual([1, 1, 0])
  })

  test('crashed, with a restart under way: no live consumer is left', async () => {
    for (const step of ['connect', 'run']) {
      const { consumer, running, stub, clock } = setUp()
      await running()
      await stub.crash(new Error('gone'))
      const held = stub.hold(step)
      await clock.advance(500)
      const stopped = consumer.stop()
      await clock.settle()
      held.resolve()
      await clock.settle()
      if (step === 'run') stub.join()
      await stopped
      expect(stub.calls.at(-1)).toBe('disconnect')
      expect(stub.calls.filter((call) => call === 'run')).toHaveLength(step === 'run' ? 2 : 1)
      expect(clock.timers).toBe(0)
    }
  })

  test('a crash while it leaves brings nothing back', async () => {
    const { consumer, running, stub, clock, times, heard } = setUp()
    await running()
    const disconnect = stub.hold('disconnect')
    const stopped = consumer.stop()
    await clock.settle()
    await stub.crash(new Error('cut'), true)
    disconnect.resolve()
    await stopped
    await clock.advance(120_000)
    expect([times('connect'), times('run'), clock.timers]).toEqual([1, 1, 0])
    expect(heard).not.toContain('restarted')
  })

  test('never rejects', async () => {
    const { consumer, running, stub, heard } = setUp()
    await running()
    stub.fail('disconnect', new Error('the socket is gone'))
    await consumer.stop()
    expect(heard).toContain('problem disconnect: the socket is gone')
  })
})

describe('P12: a crash', () => {
  test('is answered by a restart of ours, later and later, and a life as long begins the count anew', async () => {
    const { stub, running, clock, times, heard } = setUp()
    await running()
    const waits: number[] = []
    for (let i = 0; i < 8; i++) {
      await stub.crash(new Error('gone'), i % 2 === 0)
      waits.push(clock.nextIn!)
      await clock.advance(clock.nextIn!)
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    expect(times('run')).toBe(9)
    expect(heard.filter((line) => line === 'crashed gone true')).toHaveLength(8)
    stub.join()
    expect(heard.at(-2)).toBe('restarted')
    await clock.advance(30_000)
    await stub.crash(new Error('again'))
    expect(clock.nextIn).toBe(500)
  })

  test('R55: what kills it after every join is not tried every half second', async () => {
    const { stub, running, clock } = setUp()
    await running()
    const waits: number[] = []
    for (let i = 0; i < 7; i++) {
      await stub.crash(new Error('a batch that cannot be read'))
      waits.push(clock.nextIn!)
      await clock.advance(clock.nextIn!)
      stub.join()
      await clock.advance(1_000)
      // A rebalance is no new life.
      stub.join()
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000])
  })

  test('R55: a codec that kafkajs does not have is told with the topics and what to do', async () => {
    const { stub, running, heard } = setUp()
    await running()
    stub.join({ orders: [0], refunds: [1], a: [0], b: [0], c: [2] })
    const error = Object.assign(new Error('LZ4 compression not implemented'), { name: 'KafkaJSNotImplemented' })
    await stub.crash(error)
    expect(heard.at(-1)).toBe(
      "crashed LZ4 compression not implemented: register it in kafkajs's CompressionCodecs (docs/operations.md), " +
        "a batch on 'orders' or 'refunds' or 'a' or 2 more needs it true",
    )
    await stub.crash(new Error('LZ4 compression not implemented'))
    expect(heard.at(-1)).toBe('crashed LZ4 compression not implemented true')
  })

  test('a fetch counts only for a member: one that was under way at the crash is no sign of life', async () => {
    const { stub, running, clock, heard } = setUp()
    await running()
    stub.emit('fetch')
    await stub.crash(new Error('gone'))
    stub.emit('fetch')
    await clock.advance(500)
    stub.emit('fetch')
    expect(heard.filter((line) => line === 'fetched')).toHaveLength(1)
    stub.join()
    stub.emit('fetch')
    expect(heard.at(-1)).toBe('fetched')
  })

  test('a restart that fails is told and tried again', async () => {
    const { stub, running, clock, heard, times } = setUp()
    await running()
    await stub.crash(new Error('gone'))
    stub.fail('connect', new Error('nobody there'))
    await clock.advance(500)
    expect(heard.at(-1)).toBe('problem restart: nobody there')
    await clock.advance(1_000)
    expect(times('run')).toBe(2)
  })

  test('two crashes in a row make one restart', async () => {
    const { stub, running, clock, times } = setUp()
    await running()
    await stub.crash(new Error('one'))
    await stub.crash(new Error('two'))
    expect(clock.timers).toBe(1)
    await clock.advance(60_000)
    expect(times('run')).toBe(2)
  })

  test("kafkajs's own restart is never asked for: its timer outlives a disconnect", async () => {
    const { stub, running } = setUp()
    await running()
    expect(await stub.config.retry.restartOnFailure(new Error('any'))).toBe(false)
  })

  test('until the next join nothing may be committed', async () => {
    const { stub, running, consumer, clock } = setUp()
    await running()
    await stub.crash(new Error('gone'))
    expect(consumer.running).toBe(false)
    await clock.advance(500)
    expect(consumer.running).toBe(false)
    stub.join()
    expect(consumer.running).toBe(true)
  })
})

describe('rules 2 and 4: commit', () => {
  test('rule 2: before the first payload by the consumer, then by the newest payload, once each', async () => {
    const { consumer, running, stub } = setUp()
    await running()
    await consumer.commit(ENTRIES)
    expect(stub.calls.at(-1)).toBe(
      'commit by consumer [{"topic":"orders","partition":0,"offset":"1152921504606846976","metadata":""},' +
        '{"topic":"refunds","partition":1,"offset":"3","metadata":"m"}]',
    )
    const used: string[] = []
    const payload = (name: string) => ({
      async commitOffsetsIfNecessary() {
        used.push(name)
        stub.emit('commit_offsets')
      },
    })
    await stub.batch({}, payload('old'))
    await stub.batch({}, payload('new'))
    await consumer.commit(ENTRIES)
    expect(used).toEqual(['new'])
  })

  test('P8: offsets go out as the digits they have, grouped by topic', async () => {
    const { consumer, running, stub } = setUp()
    await running()
    await stub.batch()
    await consumer.commit([...ENTRIES, { ...ENTRIES[0]!, partition: 4, offset: 1n }])
    expect(stub.calls.at(-1)).toBe(
      'commit by payload {"topics":[' +
        '{"topic":"orders","partitions":[{"partition":0,"offset":"1152921504606846976","metadata":""},' +
        '{"partition":4,"offset":"1","metadata":""}]},' +
        '{"topic":"refunds","partitions":[{"partition":1,"offset":"3","metadata":"m"}]}]}',
    )
  })

  test('rule 2: the payload is forgotten at a crash', async () => {
    const { consumer, running, stub } = setUp()
    await running()
    await stub.batch()
    await stub.crash(new Error('gone'))
    await consumer.commit(ENTRIES)
    expect(stub.calls.at(-1)).toContain('commit by consumer')
  })

  test('rule 3: the request is sent inside the call', async () => {
    const { consumer, running, stub } = setUp()
    await running()
    await stub.batch()
    const before = stub.calls.length
    const committed = consumer.commit(ENTRIES)
    expect(stub.calls.length).toBe(before + 1)
    await committed
  })

  test('rule 4: resolved without COMMIT_OFFSETS is not committed', async () => {
    for (const withPayload of [false, true]) {
      const { consumer, running, stub } = setUp()
      await running()
      if (withPayload) await stub.batch()
      stub.commits = false
      await expect(consumer.commit(ENTRIES)).rejects.toThrow('did not send the commit')
    }
  })

  test('a refusal reaches the caller, and is not tried again', async () => {
    const { consumer, running, stub } = setUp()
    await running()
    await stub.batch({}, { commitOffsetsIfNecessary: () => Promise.reject(new Error('illegal generation')) })
    await expect(consumer.commit(ENTRIES)).rejects.toThrow('illegal generation')
    expect(stub.calls.filter((call) => call.startsWith('commit'))).toEqual([])
  })
})

describe('what is reported', () => {
  test('assignments, batches with exact offsets, rebalances and fetches', async () => {
    const { running, stub, heard } = setUp()
    await running()
    await stub.batch({ fetchedOffset: '9007199254740993', lastOffset: () => '9007199254740999' })
    stub.emit('rebalancing')
    stub.emit('fetch')
    expect(heard).toEqual([
      'assigned m-1 orders/0 orders/1',
      'batch orders/0 9007199254740993-9007199254740999',
      'rebalancing',
      'fetched',
    ])
  })

  test('rule 9: a batch is resolved only by the engine, to its last offset', async () => {
    const { running, stub } = setUp({ batch: (batch) => batch.resolve(batch.lastOffset + 1n) })
    await running()
    await stub.batch()
    expect(stub.calls.at(-1)).toBe('resolve 9')
  })

  test('rule 11: batches that no handler sees', async () => {
    const { running, stub, heard } = setUp()
    await running()
    const where = { topic: 'orders', partition: 1 }
    stub.emit('end_batch_process', { ...where, batchSize: 3, firstOffset: '4', lastOffset: '6' })
    stub.emit('end_batch_process', { ...where, batchSize: 0, firstOffset: '4', lastOffset: '12' })
    stub.emit('end_batch_process', { ...where, batchSize: 0, firstOffset: null, lastOffset: '22' })
    expect(heard.slice(1)).toEqual(['passed orders/1 4 13', 'passed orders/1 22 23'])
  })

  test('what it holds goes into the next join, so that the assigner can leave it there', async () => {
    const { running, stub } = setUp()
    await running()
    const assigner = stub.config.partitionAssigners[0]({ cluster: {} })
    const { metadata } = assigner.protocol({ topics: ['orders'] })
    expect(metadata.toString()).toContain('[["orders",[0,1]],"AbCd"]')
  })
})

describe('P12: nothing of ours reaches kafkajs', () => {
  const boom = (): never => {
    throw new Error('ours')
  }
  const throwing: Partial<GroupListener> = {
    assigned: boom,
    rebalancing: boom,
    batch: boom,
    passed: boom,
    crashed: boom,
    restarted: boom,
    fetched: boom,
  }
  const events = (stub: ReturnType<typeof setUp>['stub']): void => {
    stub.emit('rebalancing')
    stub.emit('fetch')
    stub.emit('end_batch_process', { topic: 'orders', partition: 0, batchSize: 0, firstOffset: '1', lastOffset: '2' })
    stub.emit('end_batch_process', { topic: 'orders', partition: 0, batchSize: 0, firstOffset: '1', lastOffset: 'x' })
    stub.emit('group_join', { memberId: 'm', isLeader: true, memberAssignment: null })
  }

  test('a listener that throws at everything', async () => {
    const { running, stub, heard, clock, times } = setUp(throwing)
    await running()
    events(stub)
    await stub.batch()
    await stub.crash(new Error('gone'))
    await clock.advance(500)
    stub.join()
    expect(times('run')).toBe(2)
    expect(heard.length).toBeGreaterThan(7)
  })

  test('one that throws even when it is told so', async () => {
    const { running, stub, clock } = setUp({ ...throwing, problem: boom })
    await running()
    events(stub)
    await stub.batch()
    await stub.batch({ fetchedOffset: undefined as never })
    await stub.crash(new Error('gone'))
    stub.fail('connect', new Error('nobody there'))
    await clock.advance(2_000)
    stub.join()
  })

  test('rule 12: eachBatch never throws, neither for a listener that rejects nor for a batch without its position', async () => {
    const { running, stub, heard } = setUp({ batch: () => Promise.reject(new Error('later')) })
    await running()
    await stub.batch()
    await stub.batch({ fetchedOffset: undefined as never })
    expect(heard.slice(1)).toEqual(['problem batch: later', expect.stringContaining('problem batch: ')])
  })

  test('seek, pause and resume do nothing where the client does not run', async () => {
    const { consumer, stub, running } = setUp()
    await running()
    consumer.seek({ topic: 'orders', partition: 0 }, 2n ** 60n)
    consumer.pause({ topic: 'orders', partition: 0 })
    consumer.resume({ topic: 'orders', partition: 0 })
    expect(stub.calls.slice(-3)).toEqual(['seek orders/0 1152921504606846976', 'pause orders/0', 'resume orders/0'])
  })
})

describe('a request that is never answered: the connection may be poisoned', () => {
  test('another client takes over while the old one ends, and what the old one still says is not heard', async () => {
    const { kafka, stub, heard, clock, consumer, running } = setUp()
    await running()
    const gone = stub.hold('disconnect')
    stub.emit('network.request_timeout')
    expect(heard.at(-1)).toMatch(/^crashed the broker has not answered a request.* true$/)
    expect(consumer.running).toBe(false)

    const before = heard.length
    stub.join({ orders: [0, 1] }, 'm-old')
    stub.emit('rebalancing')
    stub.emit('fetch')
    stub.emit('network.request_timeout')
    await stub.batch()
    await stub.crash(new Error('late'))
    expect(heard).toHaveLength(before)
    expect(kafka.consumers).toHaveLength(2)

    await clock.advance(500)
    const fresh = kafka.consumers[1]!
    fresh.join({ orders: [0] }, 'm-new')
    await clock.settle()
    expect(heard.at(-1)).toBe('assigned m-new orders/0')
    expect(consumer.running).toBe(true)
    await fresh.batch()
    expect(heard.at(-1)).toMatch(/^batch orders/)

    // A stop leaves nothing: it waits for the old one too.
    const stopped = consumer.stop()
    await clock.settle()
    expect(await isSettled(stopped)).toBe(false)
    gone.resolve()
    await stopped
    expect(fresh.calls.at(-1)).toBe('disconnect')
  })

  test('before the first join, and after a stop, it changes nothing', async () => {
    const { kafka, stub, clock, consumer, running } = setUp()
    const started = running()
    stub.emit('network.request_timeout')
    await started
    expect(kafka.consumers).toHaveLength(1)
    await consumer.stop()
    stub.emit('network.request_timeout')
    await clock.advance(60_000)
    expect(kafka.consumers).toHaveLength(1)
  })
})

describe('a member that the broker has forgotten', () => {
  const unknown = (): Promise<never> =>
    Promise.reject(
      Object.assign(new Error('The coordinator is not aware of this member'), { type: 'UNKNOWN_MEMBER_ID' }),
    )

  async function refused() {
    const set = setUp()
    await set.running()
    await set.stub.batch({}, { commitOffsetsIfNecessary: unknown })
    await expect(set.consumer.commit(ENTRIES)).rejects.toThrow('not aware')
    return set
  }

  test('and that does not join again within three heartbeats: another client takes over', async () => {
    const { clock, consumer, heard, kafka } = await refused()
    await clock.advance(8_999)
    await expect(consumer.commit(ENTRIES)).rejects.toThrow('not aware')
    expect(kafka.consumers).toHaveLength(1)
    await clock.advance(1)
    await expect(consumer.commit(ENTRIES)).rejects.toThrow('not aware')
    expect(heard.at(-1)).toMatch(/^crashed the group has dropped this member.* true$/)
    expect(kafka.consumers).toHaveLength(2)
    await clock.advance(500)
    kafka.consumers[1]!.join({ orders: [0] }, 'm-new')
    await clock.settle()
    expect(heard.at(-1)).toBe('assigned m-new orders/0')
  })

  test('and that joins again, as kafkajs does at its next heartbeat, goes on', async () => {
    const { clock, consumer, kafka, stub } = await refused()
    await clock.advance(3_000)
    stub.join({ orders: [0] }, 'm-again')
    await clock.advance(6_000)
    await stub.batch({}, { commitOffsetsIfNecessary: unknown })
    await expect(consumer.commit(ENTRIES)).rejects.toThrow('not aware')
    expect(kafka.consumers).toHaveLength(1)
  })

  test('at a rebalance, where nothing starts and so nothing is refused: another client takes over too', async () => {
    const { clock, heard, kafka, running, stub } = setUp()
    await running()
    stub.emit('rebalancing')
    // Joining may take its time: nothing is fetched meanwhile.
    await clock.advance(120_000)
    expect(kafka.consumers).toHaveLength(1)
    stub.emit('fetch_start')
    await clock.advance(8_999)
    stub.emit('fetch_start')
    expect(kafka.consumers).toHaveLength(1)
    await clock.advance(1)
    expect(heard.at(-1)).toMatch(/^crashed the group has dropped this member.* true$/)
    expect(kafka.consumers).toHaveLength(2)
  })

  test.each([
    ['joins', (stub: ReturnType<typeof setUp>['stub']) => stub.join({ orders: [0] }, 'm-again')],
    ['tells of a rebalance anew', (stub: ReturnType<typeof setUp>['stub']) => stub.emit('rebalancing')],
  ])('at a rebalance, one that %s after all goes on', async (_, happens) => {
    const { clock, kafka, running, stub } = setUp()
    await running()
    stub.emit('rebalancing')
    stub.emit('fetch_start')
    await clock.advance(5_000)
    happens(stub)
    await clock.advance(60_000)
    expect(kafka.consumers).toHaveLength(1)
  })

  test('with nothing to commit it is known by its silence: no heartbeat for a session, though it fetches', async () => {
    const { clock, heard, kafka, running, stub } = setUp()
    await running()
    await clock.advance(20_000)
    stub.emit('heartbeat')
    await clock.advance(20_000)
    stub.emit('fetch_start')
    await clock.advance(10_001)
    stub.emit('fetch_start')
    // A process that was held up for long: its next heartbeat is answered, or has it join again.
    stub.emit('heartbeat')
    await clock.advance(20_000)
    expect(kafka.consumers).toHaveLength(1)
    await clock.advance(10_001)
    stub.emit('fetch_start')
    await clock.advance(9_000)
    expect(heard.at(-1)).toMatch(/^crashed the group has dropped this member.* true$/)
    expect(kafka.consumers).toHaveLength(2)
  })

  test('a stop leaves no timer', async () => {
    const { clock, consumer, running, stub } = setUp()
    await running()
    stub.emit('rebalancing')
    stub.emit('fetch_start')
    await consumer.stop()
    expect(clock.timers).toBe(0)
  })

  test('nor does one that a rebalance comes into', async () => {
    const { clock, consumer, running, stub } = setUp()
    await running()
    const disconnect = stub.hold('disconnect')
    const stopped = consumer.stop()
    await clock.settle()
    stub.emit('rebalancing')
    stub.emit('fetch_start')
    disconnect.resolve()
    await stopped
    expect(clock.timers).toBe(0)
  })
})
