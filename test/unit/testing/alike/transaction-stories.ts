/** Transactions: their life, what readers are given of them, and what fails in them. */
import { found, send } from './producer-stories'
import { byPartition, committed, consumerOf, outcome, produce, type Story } from './stage'
import {
  abortOf,
  begin,
  commitOf,
  marked,
  offset,
  positions,
  read,
  transactional,
  withAdmin,
} from './transaction-stage'

export const transactionStories: Record<string, Story> = {
  'a transaction: its life, and what is refused when': async (stage) => {
    await stage.create('orders', 2)
    stage.note(await outcome(stage.kafka.producer({ transactionalId: '' }).transaction()))
    const producer = await transactional(stage)
    const first = await begin(stage, producer)
    stage.note(Object.keys(first), first.isActive(), producer.isIdempotent())
    stage.note('another', await outcome(producer.transaction()))
    stage.note(await send(stage, first, [{ value: 'a' }, { value: 'b' }]), await send(stage, first, [{ value: 'c' }]))
    const topicMessages = [{ topic: stage.topic(), messages: [{ value: 'd', partition: 1 }] }]
    stage.note(await outcome(first.sendBatch({ topicMessages })))
    stage.note('acks', await outcome(first.send({ topic: stage.topic(), acks: 1, messages: [{ value: 'x' }] })))
    stage.note(await commitOf(stage, first), first.isActive())
    await marked(stage, 4)
    await marked(stage, 2, 1)
    for (const act of [first.commit, first.abort, () => send(stage, first, [{ value: 'x' }])]) {
      stage.note('ended', await outcome(act()))
    }
    stage.note('ended', await outcome(first.sendOffsets(offset(stage, '1'))))

    const empty = await begin(stage, producer)
    stage.note('nothing in it', await commitOf(stage, empty), await positions(stage))
    const none = await begin(stage, producer)
    stage.note('nothing in it', await abortOf(stage, none), none.isActive(), empty.isActive())

    const second = await begin(stage, producer)
    stage.note(await send(stage, second, [{ value: 'e' }]), await abortOf(stage, second), second.isActive())
    await marked(stage, 6)
    const third = await begin(stage, producer)
    stage.note(await send(stage, third, [{ value: 'f' }]), await commitOf(stage, third))
    await marked(stage, 8)
    stage.note('outside of any', await send(stage, producer, [{ value: 'plain' }]))
    stage.note(await positions(stage))
    await producer.disconnect()
    stage.note('disconnected', await outcome(producer.transaction()).then(() => 'settled'))
    stage.note((await found(stage, 6)).sort())
    stage.note((await found(stage, 7, stage.topic(), { readUncommitted: true })).sort())
  },

  'a transactional producer that is not idempotent outside, without or with a client that retries': async (stage) => {
    await stage.create('orders')
    const producer = await transactional(stage, 'worker', { idempotent: false })
    stage.note(producer.isIdempotent())
    stage.note(await send(stage, producer, [{ value: 'outside' }]))
    const transaction = await begin(stage, producer)
    stage.note(await send(stage, transaction, [{ value: 'inside' }]))
    stage.note('outside, in the meantime', await send(stage, producer, [{ value: 'outside too' }]))
    stage.note(
      await outcome(producer.send({ topic: stage.topic(), acks: 1, messages: [{ value: '1', partition: 0 }] })),
    )
    stage.note(await commitOf(stage, transaction))
    await marked(stage, 5)
    await producer.disconnect()
    stage.note(await found(stage, 4))
  },

  'an open transaction holds up all that stands behind it, but for those who read uncommitted': async (stage) => {
    await stage.create('orders', 1)
    const producer = await transactional(stage)
    await produce(stage, [{ value: 'before' }])
    const transaction = await begin(stage, producer)
    await send(stage, transaction, [{ value: 'inside' }])
    await produce(stage, [{ value: 'behind' }])
    stage.note('open', await positions(stage))
    const careful = await read(stage, 'careful')
    await careful.until(1)
    const careless = await read(stage, 'careless', { readUncommitted: true })
    await careless.until(3)
    const late = consumerOf(stage, { groupId: stage.group('late') })
    const seen: string[] = []
    await late.connect()
    await late.subscribe({ topics: [stage.topic()], fromBeginning: false })
    await late.run({ eachMessage: async ({ message }) => void seen.push(`${message.offset} ${String(message.value)}`) })
    await stage.pass(500)
    stage.note('now it commits', await commitOf(stage, transaction))
    await marked(stage, 4)
    await careful.until(4)
    await careless.until(4)
    stage.note(await positions(stage))
    await stage.until(() => seen.length >= 2)
    stage.note('from the end on', seen)
    await late.disconnect()
    await careful.end()
    await careless.end()
    await producer.disconnect()
  },

  'rule 11, trap 8: a batch of aborted records reaches no handler, is resolved, and is never committed by itself':
    async (stage) => {
      await stage.create('orders')
      const producer = await transactional(stage)
      const aborted = await begin(stage, producer)
      await send(stage, aborted, [{ value: 'a' }, { value: 'b' }])
      await abortOf(stage, aborted)
      await marked(stage, 3)
      const auto = await read(stage, 'auto')
      await auto.until(3)
      await auto.end()
      const byHand = await read(stage, 'by hand', {}, { autoCommit: false })
      await byHand.until(3)
      await byHand.end()
      const second = await begin(stage, producer)
      await send(stage, second, [{ value: 'c' }])
      await commitOf(stage, second)
      await marked(stage, 5)
      const mixed = await read(stage, 'mixed', {}, { autoCommit: false })
      await mixed.until(5)
      await mixed.end()
      const careless = await read(stage, 'careless', { readUncommitted: true })
      await careless.until(5)
      await careless.end()
      await producer.disconnect()
    },

  'a key of four zero bytes reads as an abort marker: what is aborted behind it is delivered': async (stage) => {
    await stage.create('orders')
    const producer = await transactional(stage)
    const aborted = await begin(stage, producer)
    await send(stage, aborted, [{ value: 'a' }])
    await send(stage, aborted, [{ value: 'zeros', key: Buffer.alloc(4) }, { value: 'b' }])
    await send(stage, aborted, [{ value: 'c' }])
    await abortOf(stage, aborted)
    await marked(stage, 5)
    const foreign = await begin(stage, producer)
    await send(stage, foreign, [{ value: 'd' }])
    await produce(stage, [{ value: 'by another', key: '\0\0\0\0' }])
    await send(stage, foreign, [{ value: 'e' }])
    await abortOf(stage, foreign)
    await marked(stage, 9)
    stage.note(await found(stage, 4))
  },

  'two transactions at once: the one that began later is aborted first': async (stage) => {
    await stage.create('orders')
    await stage.create('aside')
    const patient = { retry: { retries: 10, initialRetryTime: 30 } }
    const [one, two] = [await transactional(stage, 'one'), await transactional(stage, 'two', patient)]
    const early = await begin(stage, one)
    const late = await begin(stage, two)
    await send(stage, early, [{ value: 'early 1' }])
    await send(stage, late, [{ value: 'late 1' }])
    await send(stage, early, [{ value: 'early 2' }])
    await send(stage, late, [{ value: 'late 2' }])
    await abortOf(stage, late)
    // No other transaction of this producer takes anything before the markers of the one before stand.
    const aside = await begin(stage, two)
    await send(stage, aside, [{ value: 'aside' }], stage.topic('aside'))
    await commitOf(stage, aside)
    await marked(stage, 2, 0, stage.topic('aside'))
    await send(stage, early, [{ value: 'early 3' }])
    stage.note(await positions(stage))
    await abortOf(stage, early)
    await marked(stage, 7)
    const last = await begin(stage, two)
    await send(stage, last, [{ value: 'last' }])
    await commitOf(stage, last)
    await marked(stage, 9)
    stage.note(await found(stage, 1))
    await Promise.all([one.disconnect(), two.disconnect()])
  },

  'sends that fail inside a transaction: it goes on, and its marker stands where anything was tried': async (stage) => {
    await stage.create('orders', 2)
    await stage.create('small', 1, { 'max.message.bytes': '500' })
    const small = stage.topic('small')
    const producer = await transactional(stage)
    const transaction = await begin(stage, producer)
    stage.note(await send(stage, transaction, [{ value: 'x'.repeat(600) }], small), transaction.isActive())
    stage.note(await send(stage, transaction, [{ value: 'x', partition: 1, headers: { bad: null as never } }]))
    stage.note(await send(stage, transaction, [{ value: 'nowhere', partition: 7 }]))
    stage.note(await send(stage, transaction, [{ value: 'x' }], stage.topic('missing')))
    stage.note(await send(stage, transaction, [{ value: 'fine' }]), await commitOf(stage, transaction))
    await marked(stage, 2)
    await marked(stage, 1, 1)
    await marked(stage, 1, 0, small)
    const again = await begin(stage, producer)
    stage.note(await send(stage, again, [{ value: 'small' }], small), await abortOf(stage, again))
    await marked(stage, 3, 0, small)
    stage.note(await found(stage, 1))
    await producer.disconnect()
  },

  'answers lost inside a transaction': async (stage) => {
    await stage.create('orders')
    const producer = await transactional(stage)
    const first = await begin(stage, producer)
    stage.loseAnswers('publish')
    stage.note('a send', await send(stage, first, [{ value: 'a' }]))
    stage.note(await send(stage, first, [{ value: 'b' }]), await commitOf(stage, first))
    await marked(stage, 3)
    const second = await begin(stage, producer)
    stage.loseAnswers('addPartitions')
    stage.note('the way to it', await send(stage, second, [{ value: 'c' }]))
    stage.loseAnswers('txnOffsets')
    stage.note('offsets', await stage.eventually(outcome(second.sendOffsets(offset(stage, '7')))))
    stage.note(second.isActive(), await commitOf(stage, second))
    await marked(stage, 5)
    const third = await begin(stage, producer)
    stage.note(await send(stage, third, [{ value: 'd' }]))
    stage.loseAnswers('endTransaction')
    stage.note('the end', await commitOf(stage, third), third.isActive())
    await marked(stage, 7)
    stage.note('again', await commitOf(stage, third), await outcome(producer.transaction()))
    stage.note('outside', await send(stage, producer, [{ value: 'e' }]))
    await producer.disconnect()
    await producer.connect()
    stage.note('away and back', await outcome(producer.transaction()))
    await producer.disconnect()
    stage.note(await found(stage, 5), await committed(stage))
  },

  'offsets by time: markers count, and nothing behind an open transaction': async (stage) => {
    await stage.create('orders', 1, { 'retention.ms': '-1' })
    const producer = await transactional(stage)
    const transaction = await begin(stage, producer)
    await send(stage, transaction, [{ value: 'a', timestamp: '1700000000000' }])
    const at = (time: number) =>
      withAdmin(stage, (admin) => admin.fetchTopicOffsetsByTimestamp(stage.topic(), time).then(byPartition))
    stage.note('open', await at(5), await at(1_700_000_000_001))
    await commitOf(stage, transaction)
    await marked(stage, 2)
    stage.note('committed', await at(5), await at(1_700_000_000_001))
    const open = await begin(stage, producer)
    await send(stage, open, [{ value: 'b', timestamp: '1750000000000' }])
    stage.note('open', await at(1_750_000_000_000))
    await abortOf(stage, open)
    await marked(stage, 4)
    stage.note('aborted', await at(1_750_000_000_000))
    await producer.disconnect()
  },
}
