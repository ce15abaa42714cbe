/** The idempotent producer: sequence numbers, what a lost answer does to them, and what is lost with it. */
import type { Producer, ProducerConfig } from 'kafkajs'
import { consumerOf, outcome, type Stage, type Story } from './stage'

/** A producer or a transaction. */
type Sender = Pick<Producer, 'send'>
type Messages = Parameters<Producer['send']>[0]['messages']

const SOON = { retries: 1, initialRetryTime: 30 }

async function idempotent(stage: Stage, config: ProducerConfig = {}): Promise<Producer> {
  const producer = stage.kafka.producer({ idempotent: true, maxInFlightRequests: 1, retry: SOON, ...config })
  await producer.connect()
  return producer
}

type Answer = { value?: { baseOffset: string; logAppendTime: string }[] }

/** The answer or the error. A batch that the broker knows already is answered with the time that it bears. */
export async function send(
  stage: Stage,
  producer: Sender,
  messages: Messages,
  topic = stage.topic(),
): Promise<unknown> {
  const sending = producer.send({ topic, messages: messages.map((m) => ({ partition: 0, ...m })) })
  const answer = (await stage.eventually(outcome(sending))) as Answer
  for (const one of answer.value ?? []) if (one.logAppendTime !== '-1') one.logAppendTime = '<time>'
  return answer
}

/** What a consumer finds: values, where they stand and in which batch they came. */
export async function found(stage: Stage, count: number, topic = stage.topic(), config = {}): Promise<unknown[]> {
  const consumer = consumerOf(stage, { groupId: stage.group(`reader-${topic}-${count}`), ...config })
  const seen: unknown[] = []
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      seen.push([partition, message.offset, String(message.value), batchOf(message)])
    },
  })
  await stage.until(() => seen.length >= count)
  await stage.pass(300)
  await consumer.disconnect()
  return seen
}

function batchOf(message: unknown): string {
  const { batchContext: batch } = message as { batchContext: Record<string, unknown> }
  const { magicByte, timestampType, isControlBatch, firstTimestamp, maxTimestamp, partitionLeaderEpoch, ...rest } =
    batch
  const usual = [magicByte, isControlBatch, typeof partitionLeaderEpoch].join() === '2,false,number'
  const producer = rest.producerId === '-1' ? 'none' : typeof rest.producerId
  const timed = timestampType === 0 ? 'by the sender' : timestampType
  const times = firstTimestamp === maxTimestamp ? 'one time' : 'times'
  return JSON.stringify({ ...rest, producerId: producer, times, timed, usual }).replaceAll('"', '')
}

export const producerStories: Record<string, Story> = {
  'idempotent producer: what it refuses, and its sequence numbers': async (stage) => {
    await stage.create('orders', 2)
    await stage.create('small', 1, { 'max.message.bytes': '500' })
    const topic = stage.topic()
    stage.note(await outcome(() => stage.kafka.producer({ idempotent: true, retry: { retries: 0 } })))
    const unconnected = stage.kafka.producer({ idempotent: true })
    stage.note(await outcome(unconnected.send({ topic, messages: [{ value: 'x' }] })), unconnected.isIdempotent())
    const producer = await idempotent(stage)
    for (const acks of [0, 1]) {
      stage.note(acks, await outcome(producer.send({ topic, acks, messages: [{ value: 'x' }] })))
    }
    stage.note(await outcome(producer.transaction()))
    stage.note(await send(stage, producer, [{ value: 'a' }, { value: 'b' }]))
    stage.note(await send(stage, producer, [{ value: 'c', partition: 1 }]))
    const small = stage.topic('small')
    stage.note('too large', await send(stage, producer, [{ value: 'x'.repeat(600) }], small))
    stage.note('unwritable', await send(stage, producer, [{ value: 'x', headers: { bad: null as never } }]))
    stage.note(await send(stage, producer, [{ value: 'small' }], small))
    stage.note(await send(stage, producer, [{ value: 'd' }, { value: 'e' }, { value: 'f' }]))
    stage.note('nowhere', await send(stage, producer, [{ value: 'x', partition: 7 }]))
    await producer.disconnect()
    await producer.connect()
    // Now and then kafkajs sends it twice here, by itself: the answer then bears a time.
    const [again] = ((await send(stage, producer, [{ value: 'g' }])) as Answer).value ?? []
    stage.note('the same after it was away', again?.baseOffset)
    await producer.disconnect()
    const plain = stage.kafka.producer()
    await plain.connect()
    stage.note(plain.isIdempotent(), await send(stage, plain, [{ value: 'plain', timestamp: '5' }, { value: 'new' }]))
    await stage.create('timed', 1, { 'message.timestamp.type': 'LogAppendTime' })
    stage.note(await send(stage, plain, [{ value: 'timed', timestamp: '5' }], stage.topic('timed')))
    await plain.disconnect()
    stage.note(await found(stage, 1, stage.topic('timed')))
    const all = await found(stage, 9)
    stage.note(all.sort())
    stage.note(await found(stage, 1, small))
  },

  'an answer that is lost once: the record stands once, and the answer names its place': async (stage) => {
    await stage.create('orders')
    const producer = await idempotent(stage)
    stage.note(await send(stage, producer, [{ value: 'a' }]))
    stage.loseAnswers('publish')
    stage.note(await send(stage, producer, [{ value: 'b' }, { value: 'c' }]))
    stage.note(await send(stage, producer, [{ value: 'd' }]))
    await producer.disconnect()
    const plain = stage.kafka.producer({ retry: SOON })
    await plain.connect()
    stage.loseAnswers('publish')
    stage.note('not idempotent', await send(stage, plain, [{ value: 'twice' }]))
    await plain.disconnect()
    stage.note(await found(stage, 6))
  },

  'rule 17: C is stored and its send rejected, then D is acknowledged at its place and is nowhere': async (stage) => {
    await stage.create('orders')
    const producer = await idempotent(stage)
    stage.note(await send(stage, producer, [{ value: 'a' }, { value: 'b' }]))
    stage.loseAnswers('publish', 2)
    stage.note('C', await send(stage, producer, [{ value: 'C' }]))
    stage.note('D', await send(stage, producer, [{ value: 'D' }]))
    stage.note('E', await send(stage, producer, [{ value: 'E' }]))
    await producer.disconnect()
    stage.note(await found(stage, 4))
  },

  'rule 17: what is larger than the one whose answer was lost is out of order, for ever': async (stage) => {
    await stage.create('orders', 2)
    const producer = await idempotent(stage)
    stage.loseAnswers('publish', 2)
    stage.note('C', await send(stage, producer, [{ value: 'C' }]))
    stage.note('D', await send(stage, producer, [{ value: 'D1' }, { value: 'D2' }]))
    stage.note('D', await send(stage, producer, [{ value: 'D1' }, { value: 'D2' }]))
    stage.note('the other partition', await send(stage, producer, [{ value: 'other', partition: 1 }]))
    await producer.disconnect()
    await producer.connect()
    stage.note('away and back', await send(stage, producer, [{ value: 'D1' }, { value: 'D2' }]))
    await producer.disconnect()
    const anew = await idempotent(stage)
    stage.note('another', await send(stage, anew, [{ value: 'D1' }, { value: 'D2' }]))
    await anew.disconnect()
    stage.note((await found(stage, 4)).sort())
  },

  'R08: fifty sends at once are all stored': async (stage) => {
    await stage.create('orders')
    const producer = await idempotent(stage)
    const one = (i: number): Promise<unknown> => send(stage, producer, [{ value: String(i) }])
    const answers = (await Promise.all(Array.from({ length: 50 }, (_, i) => one(i)))) as Answer[]
    stage.note(answers.map(({ value }) => Number(value?.[0]?.baseOffset)).sort((a, b) => a - b))
    await producer.disconnect()
    const values = (await found(stage, 50)).map((seen) => (seen as unknown[])[2])
    stage.note(values.length, new Set(values).size)
  },

  'R08: a send during the retry of one whose answer was lost is acknowledged at its place and is nowhere': async (
    stage,
  ) => {
    await stage.create('orders')
    const producer = await idempotent(stage, { retry: { retries: 5, initialRetryTime: 2000 } })
    stage.note(await send(stage, producer, [{ value: 'before' }]))
    stage.loseAnswers('publish')
    const a = send(stage, producer, [{ value: 'A' }])
    await stage.pass(500)
    stage.note('B', await send(stage, producer, [{ value: 'B' }]))
    stage.note('A', await a)
    await producer.disconnect()
    stage.note(await found(stage, 3))
  },
}
