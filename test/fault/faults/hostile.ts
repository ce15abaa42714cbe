/**
 * What strangers may write. On the main topic each such record ends handled or on the dead letter topic, with the bytes that it
 * came with (see `bytes.ts`); on a retry topic what claims to be of another topic goes nowhere. A batch that no worker can
 * decode stops its partition, and no other, until the workers have the codec.
 */
import { CompressionTypes, type IHeaders } from 'kafkajs'
import type { Chance } from '../chance'
import { encodeWish } from '../payload'
import { NothingToDo, type Fault } from './fault'

const OWN = ['x-attempt', 'x-due-at', 'x-original-topic', 'x-original-partition', 'x-original-offset', 'x-error',
  'x-history', 'x-null-headers', 'x-consumer-group', 'x-failure-reason', 'x-first-failed-at', 'x-replay-count'] // prettier-ignore
const NAMES = ['__proto__', 'constructor', 'toString', '', '0', 'traceparent', 'naïve ☃', 'a b\n']
const BATCH = 20

const bytes = (chance: Chance, from: number, to: number): Buffer =>
  Buffer.from(Array.from({ length: chance.between(from, to) }, () => chance.between(0, 255)))

function headers(chance: Chance, names: readonly string[]): IHeaders {
  const made = Object.create(null) as IHeaders
  for (let left = chance.between(0, 5); left > 0; left--)
    made[chance.next() < 0.7 ? chance.pick(names) : bytes(chance, 1, 12).toString('utf8')] = bytes(chance, 0, 60)
  return made
}

const garbage = (chance: Chance): { key: Buffer | null; value: Buffer | null; headers: IHeaders } => ({
  // kafkajs takes four zero bytes for a marker: five cannot be that.
  key: chance.next() < 0.2 ? null : bytes(chance, 5, 40),
  value: chance.next() < 0.1 ? null : bytes(chance, 0, 200),
  headers: headers(chance, [...OWN, ...NAMES]),
})

export const hostileBytes: Fault = {
  name: 'hostile-bytes',
  about: 'random bytes as key, value, header names and headers of ours; forged copies on the retry topics',
  resource: 'topics',
  lastsMs: [0, 1_000],
  excuses: { copies: false, stall: false },
  async begin({ kafka, topic, tiers, log }, chance) {
    const producer = kafka.producer({ allowAutoTopicCreation: false })
    await producer.connect()
    try {
      const many = (): ReturnType<typeof garbage>[] => Array.from({ length: BATCH }, () => garbage(chance))
      await producer.send({ topic, acks: -1, messages: many() })
      for (const tier of tiers) {
        // Of another main topic: nobody here may call a handler for it, or copy it on.
        const forged = many().map((one) => ({
          ...one,
          headers: {
            ...headers(chance, NAMES),
            'x-attempt': String(chance.between(0, 9)),
            'x-due-at': '0',
            'x-original-topic': 'payroll',
            'x-original-partition': '0',
            'x-original-offset': String(chance.between(0, 1e9)),
            'x-consumer-group': 'shipping',
          },
        }))
        await producer.send({ topic: tier, acks: -1, messages: forged })
      }
    } finally {
      await producer.disconnect()
    }
    log(`${BATCH} records of random bytes, and as many forged ones on each retry topic`)
    return async () => undefined
  },
}

let batches = 0

export const unknownCodec: Fault = {
  name: 'unknown-codec',
  about: 'a batch in a codec that no worker knows, for a while, in one partition',
  resource: 'topics',
  lastsMs: [2_000, 5_000],
  // The other partitions must go on.
  excuses: { copies: false, stall: false },
  async begin({ kafka, topic, crew, log }, chance) {
    if (crew.alive.length === 0) throw new NothingToDo('no worker is up')
    for (const slot of crew.alive) crew.tell(slot, { do: 'codec', known: false })
    const partition = chance.between(0, 5)
    const producer = kafka.producer({ allowAutoTopicCreation: false, createPartitioner: () => () => partition })
    await producer.connect()
    try {
      const batch = ++batches
      const messages = Array.from({ length: BATCH }, (_, i) => {
        const fails = chance.pick([0, 0, 0, 1])
        return { key: null, value: encodeWish({ id: `codec-${batch}-${i}`, fails, fatal: false, ms: 0 }) }
      })
      await producer.send({ topic, acks: -1, compression: CompressionTypes.GZIP, messages })
    } finally {
      await producer.disconnect()
    }
    log(`a batch in gzip on partition ${partition}, which the workers do not know`)
    return async () => {
      for (const slot of crew.alive) crew.tell(slot, { do: 'codec', known: true })
    }
  },
}
