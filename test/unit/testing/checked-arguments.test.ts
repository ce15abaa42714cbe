import { describe, expect, it } from 'vitest'
import { createFakeKafka } from '../../../src/testing'

/** What the types forbid, as a test in JavaScript may write it. */
const loose = () => createFakeKafka({ topics: { orders: 1 } }) as any
const create = createFakeKafka as (options: unknown) => unknown

describe('a mistake in the call of the fake broker is refused, with field, value and mend', () => {
  it.each<[string, () => unknown, RegExp]>([
    ['no options', () => create(null), /^createFakeKafka\(\): null is no options; give \{ topics/],
    ['text for options', () => create('orders'), /'orders' is no options; give/],
    ['an option that is none', () => create({ topic: 'x' }), /there is no option 'topic'; there are: topics, startAt/],
    [
      'a list of topics',
      () => create({ topics: ['orders'] }),
      /topics is a list of 1, which is not understood; give \{ orders: 3 \}/,
    ],
    ['partitions as text', () => create({ topics: { orders: '3' } }), /topics: orders is '3'; give \{ partitions/],
    ['a topic of null', () => create({ topics: { orders: null } }), /topics: orders is null; give/],
    [
      'a typo in a topic',
      () => create({ topics: { orders: { partition: 3 } } }),
      /orders: there is no setting 'partition'; there are: partitions/,
    ],
    [
      'partitions of a topic as text',
      () => create({ topics: { orders: { partitions: '3' } } }),
      /partitions of orders is '3'; give a number/,
    ],
    ['settings as text', () => create({ topics: { orders: { config: 'x' } } }), /config of orders is 'x'; give/],
    ['no number of brokers', () => create({ brokers: 'x' }), /brokers: 'x' is not a number of nodes/],
    ['slowPolls that is text', () => create({ slowPolls: 'no' }), /slowPolls is 'no'; give true/],
    [
      'a topic without a name',
      () => loose().createTopic(),
      /^kafka\.createTopic\(\): the name is undefined; give text/,
    ],
    ['a topic of a number', () => loose().createTopic('bills', 3), /bills is 3; give \{ partitions/],
    [
      'an offset that is none',
      () => loose().deleteRecords('orders', 0, 'x'),
      /^kafka\.deleteRecords\(\): the offset is 'x'; give a bigint/,
    ],
    ['an offset that is missing', () => loose().deleteRecords('orders', 0), /the offset is undefined; give/],
    ['a partition that is missing', () => loose().deleteRecords('orders'), /there is no orders\/-1 on the fake broker/],
    [
      'a kind of request that is none',
      () => loose().broker.next('publsh'),
      /^kafka\.broker\.next\(\): 'publsh' is no kind of request; give one of publish, commit/,
    ],
    [
      'the same for all requests',
      () => loose().broker.every('toString'),
      /^kafka\.broker\.every\(\): 'toString' is no kind/,
    ],
    [
      'a filter that is none',
      () => loose().broker.next('publish', { topci: 'orders' }),
      /there is no filter 'topci'; there are: node, topic/,
    ],
    [
      'a filter that is text',
      () => loose().broker.next('publish', 'orders'),
      /'orders' says not which requests; give \{ topic/,
    ],
    [
      'a partition that is text',
      () => loose().broker.every('fetch', { partition: '0' }),
      /partition is '0'; give a number/,
    ],
    [
      'no error',
      () => loose().broker.next('publish').fail(),
      /fail\('undefined'\): not a protocol error that the fake knows/,
    ],
    ['a jump in words', () => loose().clock.jump('1m'), /^clock\.jump\(\): 1m is not a number of ms; give one/],
  ])('%s', (_, call, says) => {
    expect(call).toThrow(expect.objectContaining({ code: 'RETRYLINE_TESTING' }))
    expect(call).toThrow(says)
  })

  it('and what is right goes through', () => {
    const kafka = createFakeKafka({
      topics: { a: 2, b: { partitions: 1, config: { 'retention.ms': '1' } } },
      slowPolls: false,
    })
    kafka.createTopic('c')
    kafka.createTopic('d', { partitions: 2 })
    for (const offset of [0n, 0, '0']) kafka.deleteRecords('a', 1, offset)
    kafka.broker.next('publish').fail(new Error('mine'))
    kafka.broker.every('fetch', { topic: 'a', partition: 0 }).fail('NOT_LEADER_FOR_PARTITION').stop()
    kafka.clock.jump(-5)
  })
})
