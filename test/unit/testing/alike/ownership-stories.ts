/** Offsets in transactions, who owns a transactional id, and how long. */
import { found, send } from './producer-stories'
import { committed, consumerOf, outcome, produce, type Story } from './stage'
import {
  abortOf,
  begin,
  commitOf,
  marked,
  offset,
  positions,
  settled,
  SOON,
  transactional,
  withAdmin,
} from './transaction-stage'

export const ownershipStories: Record<string, Story> = {
  'offsets in a transaction: unseen until it commits, gone when it aborts': async (stage) => {
    await stage.create('orders', 2)
    const producer = await transactional(stage, 'worker', { client: stage.other({ retry: SOON }) })
    const first = await begin(stage, producer)
    stage.note(await outcome(first.sendOffsets(offset(stage, '3'))), 'pending', await committed(stage))
    const [more] = offset(stage, '4', 'mark').topics
    stage.note(await outcome(first.sendOffsets({ consumerGroupId: stage.group(), topics: [more as never] })))
    stage.note(await commitOf(stage, first))
    await settled(stage, '4')
    stage.note('committed', await committed(stage))
    const second = await begin(stage, producer)
    stage.note(await outcome(second.sendOffsets(offset(stage, '9', 'lost'))), await abortOf(stage, second))
    await stage.pass(300)
    stage.note('aborted', await committed(stage))

    const third = await begin(stage, producer)
    stage.note(await outcome(third.sendOffsets(offset(stage, '5'))))
    await withAdmin(stage, async (admin) => {
      const partitions = [{ partition: 0, offset: '2' }]
      stage.note(
        'a plain one',
        await outcome(admin.setOffsets({ groupId: stage.group(), topic: stage.topic(), partitions })),
      )
    })
    stage.note(await commitOf(stage, third))
    await stage.pass(500)
    stage.note('the plain one, sent later, stands', await committed(stage))
    const fourth = await begin(stage, producer)
    for (const bad of [
      { ...offset(stage, '1'), consumerGroupId: '' },
      { consumerGroupId: stage.group() } as never,
      offset(stage, '1', 'x'.repeat(4097)),
    ]) {
      stage.note('refused', await outcome(fourth.sendOffsets(bad)))
    }
    const late = { topic: stage.topic('late'), partitions: [{ partition: 0, offset: '1' }] }
    const trying = outcome(fourth.sendOffsets({ consumerGroupId: stage.group(), topics: [late] }))
    await stage.pass(200)
    await stage.create('late')
    stage.note('of a topic that is not there yet', await stage.eventually(trying))
    stage.note(fourth.isActive(), await commitOf(stage, fourth))
    await stage.pass(300)
    stage.note(await committed(stage))
    await producer.disconnect()
  },

  "rule 18: offsets in a transaction carry no member: another's are taken, under the group's feet": async (stage) => {
    await stage.create('orders')
    await produce(
      stage,
      Array.from({ length: 20 }, (_, i) => ({ value: String(i) })),
    )
    const consumer = consumerOf(stage)
    let seen = 0
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({ autoCommitThreshold: 20, eachMessage: async () => void seen++ })
    await stage.until(() => seen === 20)
    await stage.pass(300)
    stage.note(await committed(stage))
    const producer = await transactional(stage, 'worker', { client: stage.other() })
    const transaction = await begin(stage, producer)
    stage.note(await outcome(transaction.sendOffsets(offset(stage, '1'))), await commitOf(stage, transaction))
    await settled(stage, '1')
    stage.note(await committed(stage))
    await Promise.all([producer.disconnect(), consumer.disconnect()])
    stage.note(await committed(stage))
  },

  'rule 18: connect() does not fence, transaction() does': async (stage) => {
    await stage.create('orders')
    const old = await transactional(stage)
    const before = await begin(stage, old)
    stage.note(await send(stage, before, [{ value: 'a' }]))
    const next = await transactional(stage, 'worker', { client: stage.other() })
    stage.note('connected', await send(stage, before, [{ value: 'b' }]), await commitOf(stage, before))
    await marked(stage, 3)
    const fenced = await begin(stage, old)
    stage.note(await send(stage, fenced, [{ value: 'c' }]))
    const taken = await begin(stage, next)
    await marked(stage, 5)
    stage.note('fenced', await send(stage, fenced, [{ value: 'd' }]), fenced.isActive())
    stage.note(await outcome(fenced.sendOffsets(offset(stage, '1'))), fenced.isActive())
    stage.note(await commitOf(stage, fenced), fenced.isActive(), await abortOf(stage, fenced))
    stage.note(await outcome(old.transaction()))
    stage.note('outside', await send(stage, old, [{ value: 'outside' }]))
    stage.note(await send(stage, taken, [{ value: 'e' }]), await commitOf(stage, taken))
    await marked(stage, 8)
    const third = await transactional(stage, 'worker', { client: stage.other() })
    stage.note('a take-over', await abortOf(stage, await begin(stage, third)))
    const late = await begin(stage, next)
    stage.note('idle at the time', await send(stage, late, [{ value: 'f' }]), await abortOf(stage, late))
    await Promise.all([old.disconnect(), next.disconnect(), third.disconnect()])
    stage.note(await found(stage, 4), await positions(stage))
  },

  'CONCURRENT_TRANSACTIONS: who takes over an open transaction waits for its end, though its client never tries twice':
    async (stage) => {
      await stage.create('orders')
      const old = await transactional(stage)
      const open = await begin(stage, old)
      await send(stage, open, [{ value: 'a' }])
      const client = stage.other({ retry: { retries: 0 } })
      const impatient = client.producer({ transactionalId: stage.group('worker'), maxInFlightRequests: 1 })
      await impatient.connect()
      const since = stage.now()
      const taken = await begin(stage, impatient)
      stage.note(stage.now() - since >= 40, taken.isActive(), await abortOf(stage, taken))
      await marked(stage, 2)
      stage.note(await abortOf(stage, open), open.isActive())
      await Promise.all([old.disconnect(), impatient.disconnect()])
    },

  'a transaction that takes too long is aborted by the broker, and its producer is fenced': async (stage) => {
    await stage.create('orders')
    const long = await transactional(stage, 'long', { transactionTimeout: 1_000_000_000 })
    stage.note(await outcome(long.transaction()))
    const producer = await transactional(stage, 'worker', { transactionTimeout: 1000 })
    const transaction = await begin(stage, producer)
    stage.note(
      await send(stage, transaction, [{ value: 'a' }]),
      await outcome(transaction.sendOffsets(offset(stage, '1'))),
    )
    await marked(stage, 2)
    stage.note(transaction.isActive(), await send(stage, transaction, [{ value: 'b' }]))
    stage.note(await commitOf(stage, transaction), transaction.isActive(), await outcome(producer.transaction()))
    const anew = await transactional(stage)
    const second = await begin(stage, anew)
    stage.note(await send(stage, second, [{ value: 'c' }]), await commitOf(stage, second))
    await marked(stage, 4)
    await Promise.all([long.disconnect(), producer.disconnect(), anew.disconnect()])
    stage.note(await found(stage, 1), await committed(stage))
  },
}
