import { describe, expect, it } from 'vitest'
import { allowCommand } from '../../../src/ports'
import {
  accessOf,
  buildTopology,
  operationsOn,
  type Access,
  type Role,
  type TopologyInput,
} from '../../../src/topology'

const told = (input: Partial<TopologyInput>, role: Role = 'consumer'): string[] =>
  accessOf(buildTopology({ topics: ['orders'], groupId: 'billing', delays: [60_000], ...input }), role).map(
    ({ operation, resourceType, name, pattern, when }: Access) =>
      `${operation} ${resourceType} ${name}${pattern === 'prefixed' ? '*' : ''}${when === undefined ? '' : ` (${when})`}`,
  )

describe('accessOf', () => {
  it('names each topic and group once, whatever the number of waits', () => {
    expect(told({ delays: [60_000, 600_000], formerTiers: [{ delayMs: 5_000 }] })).toEqual(told({}))
    expect(told({})).toEqual([
      'Read topic orders',
      'Read topic orders.retry.*',
      'Write topic orders.retry.*',
      'Write topic orders.dlq',
      'Read group billing',
      'Read group billing.retry.*',
      'DescribeConfigs topic orders (verify)',
      'DescribeConfigs topic orders.retry.* (verify)',
      'DescribeConfigs topic orders.dlq (verify)',
      'Create topic orders.retry.* (create)',
      'Create topic orders.dlq (create)',
      'Write transactional-id billing/* (exactly-once)',
      'Write transactional-id billing.retry.* (exactly-once)',
    ])
  })

  it('without waits: no retry topic, no second group', () => {
    for (const role of ['consumer', 'replayer', 'monitor'] as const) {
      expect(told({ delays: [] }, role).filter((line) => line.includes('retry'))).toEqual([])
    }
  })

  it('names by topic and group, and names of the user', () => {
    expect(told({ naming: 'group' })).toContain('Write topic orders.billing.retry.*')
    const naming = { retry: (topic: string) => `again-${topic}`, deadLetter: (topic: string) => `dead-${topic}` }
    expect(told({ naming })).toEqual(expect.arrayContaining(['Write topic again-orders', 'Write topic dead-orders']))
  })

  it('former groups are only looked at', () => {
    const added = told({ formerGroupIds: ['old'] }).filter((line) => !told({}).includes(line))
    expect(added).toEqual(['Describe group old.retry.* (formerGroupIds)'])
  })

  it('who replays reads dead letters and writes them back, and nothing else', () => {
    expect(told({ delays: [60_000, 600_000], formerGroupIds: ['old'] }, 'replayer')).toEqual([
      'Read topic orders.dlq',
      'Read group billing.replay',
      'Write topic orders.retry.* (toRetry)',
      'Write topic orders (toMain)',
    ])
  })

  it('who watches writes nothing, and reads nothing but the dead letters that it shows', () => {
    expect(told({ delays: [60_000, 600_000] }, 'monitor')).toEqual([
      'Describe topic orders',
      'Describe topic orders.retry.*',
      'Describe topic orders.dlq',
      'Describe group billing',
      'Describe group billing.retry.*',
      'DescribeConfigs topic orders.retry.*',
      'DescribeConfigs topic orders.dlq',
      'Read topic orders.dlq (records)',
      'Read group billing.monitor (records)',
    ])
  })

  it('says of each topic what the list says', () => {
    const list = accessOf(buildTopology({ topics: ['orders'], groupId: 'billing', delays: [60_000] }), 'consumer')
    const on = (name: string): string[] =>
      list.filter((one) => one.name === name && one.when !== 'create').map(({ operation }) => operation)
    expect(operationsOn('main', true)).toEqual(on('orders'))
    expect(operationsOn('retry', true)).toEqual(on('orders.retry.'))
    expect(operationsOn('dead-letter', true)).toEqual(on('orders.dlq'))
    expect(operationsOn('dead-letter', false)).toEqual(['Write'])
  })
})

describe('allowCommand', () => {
  it('quotes what a shell would take apart', () => {
    expect(allowCommand("User:O'Neil, of Cork", ['Read'], 'group', ['billing us'])).toBe(
      `kafka-acls.sh --bootstrap-server "$KAFKA_BROKERS" --add --allow-principal 'User:O'\\''Neil, of Cork' ` +
        `--operation Read --group 'billing us'`,
    )
    expect(allowCommand(undefined, ['Write'], 'transactional-id', ['billing-orders-0'])).toContain(
      '--allow-principal "$PRINCIPAL" --operation Write --transactional-id billing-orders-0',
    )
  })
})
