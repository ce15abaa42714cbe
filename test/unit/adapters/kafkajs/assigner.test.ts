import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { createAssigners } from '../../../../src/adapters/kafkajs/assigner'
import { encodeMemberMetadata } from '../../../../src/adapters/kafkajs/member-protocol'

const { MemberAssignment } = createRequire(import.meta.url)('kafkajs/src/consumer/assignerProtocol.js')

function setUp(options: {
  cluster?: Record<string, number[]>
  elsewhere?: Record<string, number>
  owned?: [string, number[]][]
}) {
  const { cluster = {}, elsewhere = {}, owned = [] } = options
  const lookedUp: string[][] = []
  const assigners = createAssigners(
    () => new Map(owned),
    async (topics) => {
      lookedUp.push([...topics])
      return new Map(Object.entries(elsewhere).filter(([topic]) => topics.includes(topic)))
    },
    'AbCd',
  ).map((make) =>
    make({
      cluster: {
        findTopicPartitionMetadata: (topic: string) => (cluster[topic] ?? []).map((partitionId) => ({ partitionId })),
      } as never,
    }),
  )
  return { assigners, lookedUp }
}

const speaks = (
  memberId: string,
  topics: string[],
  userData: unknown = '',
): { memberId: string; memberMetadata: Buffer } => ({
  memberId,
  memberMetadata: encodeMemberMetadata(
    0,
    topics,
    Buffer.from(typeof userData === 'string' ? userData : JSON.stringify(userData)),
  ),
})

async function divide(
  assigner: ReturnType<typeof setUp>['assigners'][number],
  members: { memberId: string; memberMetadata: Buffer }[],
  topics: string[],
): Promise<Record<string, Record<string, number[]>>> {
  const answer = await assigner.assign({ members, topics })
  return Object.fromEntries(
    answer.map(({ memberId, memberAssignment }) => [memberId, MemberAssignment.decode(memberAssignment).assignment]),
  )
}

describe('rule 15: the assigners', () => {
  test('ours first, and the default of kafkajs by name for a rolling upgrade', () => {
    const { assigners } = setUp({})
    expect(assigners.map(({ name, version }) => [name, version])).toEqual([
      ['RetrylineStickyAssigner', 0],
      ['RoundRobinAssigner', 0],
    ])
    const metadata = assigners.map(({ protocol }) => protocol({ topics: ['a'] }).metadata.toString('hex'))
    expect(metadata[1]).toBe(encodeMemberMetadata(0, ['a'], Buffer.alloc(0)).toString('hex'))
  })

  test('what a member holds travels with its join, and stays where it is', async () => {
    const { assigners } = setUp({ cluster: { a: [0, 1, 2, 3] }, owned: [['a', [1, 3]]] })
    const mine = { memberId: 'm9', memberMetadata: assigners[0]!.protocol({ topics: ['a'] }).metadata }
    expect(await divide(assigners[0]!, [speaks('m1', ['a']), mine], ['a'])).toEqual({
      m1: { a: [0, 2] },
      m9: { a: [1, 3] },
    })
  })

  test('a rolling change of topics: each gets only its own; those that the leader does not read are looked up', async () => {
    const { assigners, lookedUp } = setUp({ cluster: { a: [1, 0] }, elsewhere: { b: 3 } })
    const members = [speaks('leader', ['a']), speaks('other', ['b'])]
    expect(await divide(assigners[0]!, members, ['a'])).toEqual({ leader: { a: [0, 1] }, other: { b: [0, 1, 2] } })
    expect(lookedUp).toEqual([['b']])
  })

  test('nothing is looked up where all read the same, and a topic that does not exist goes to nobody', async () => {
    const { assigners, lookedUp } = setUp({ cluster: { a: [0] } })
    expect(await divide(assigners[0]!, [speaks('m0', ['a'])], ['a'])).toEqual({ m0: { a: [0] } })
    expect(lookedUp).toEqual([])
    expect(await divide(assigners[0]!, [speaks('m0', ['a', 'gone'])], ['a'])).toEqual({ m0: { a: [0] } })
    expect(lookedUp).toEqual([['gone']])
  })

  test('plain kafkajs members are divided by the same means', async () => {
    const { assigners } = setUp({ cluster: { a: [0, 1] } })
    expect(await divide(assigners[1]!, [speaks('m0', ['a']), speaks('m1', ['a'])], ['a'])).toEqual({
      m0: { a: [0] },
      m1: { a: [1] },
    })
  })

  test('a member whose metadata cannot be read gets nothing; one whose user data cannot, only loses its claims', async () => {
    const { assigners } = setUp({ cluster: { a: [0, 1] } })
    for (const userData of ['{', '"x"', '{"a":[0]}', [['a', 'all']], [['a', [{}, null, 'x']]], [[]], [null, 7]]) {
      const members = [
        { memberId: 'ill', memberMetadata: Buffer.from([0]) },
        { memberId: 'none', memberMetadata: Buffer.alloc(0) },
        speaks('odd', ['a'], userData),
      ]
      expect(await divide(assigners[0]!, members, ['a'])).toEqual({ ill: {}, none: {}, odd: { a: [0, 1] } })
    }
  })
})
