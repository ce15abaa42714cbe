import { connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { Kafka, logLevel, type ISocketFactory, type KafkaConfig } from 'kafkajs'
import { unique } from '../../../helpers/broker-shared'
import { API_KEYS, plain, type LosableKind, type Story } from './stage'

/** Time on the real stage is real: what passes there is part of the story. */
const sleep: (ms: number) => Promise<void> = promisify(setTimeout)

export async function onReal(story: Story, brokers: string[]): Promise<unknown[]> {
  const losing: Losing = {}
  const socketFactory = losingAnswers(losing)
  const client = (options: Partial<KafkaConfig> = {}): Kafka =>
    new Kafka({ brokers, clientId: 'kafkajs', logLevel: logLevel.NOTHING, socketFactory, ...options })
  const kafka = client()
  const prefix = `${unique('alike')}.`
  const trace: unknown[] = []
  await story({
    kafka,
    other: client,
    topic: (name = 'orders') => prefix + name,
    group: (name = 'billing') => prefix + name,
    async create(name, numPartitions = 1, config = {}) {
      const admin = kafka.admin()
      await admin.connect()
      const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }))
      const topic = prefix + name
      await admin.createTopics({ topics: [{ topic, numPartitions, configEntries }], waitForLeaders: false })
      // kafkajs's own wait gives up where a busy broker has not heard of the topic after 100 ms.
      const isThere = () =>
        admin.fetchTopicMetadata({ topics: [topic] }).then(
          () => true,
          () => false,
        )
      while (!(await isThere())) await sleep(50)
      await admin.disconnect()
    },
    loseAnswers: (kind, times = 1) => void (losing[kind] = (losing[kind] ?? 0) + times),
    now: () => Date.now(),
    pass: (ms) => sleep(ms),
    async until(condition) {
      const end = Date.now() + 40_000
      while (!condition()) {
        if (Date.now() > end) throw new Error('it never came to that')
        await sleep(20)
      }
    },
    sleep: (ms) => sleep(ms),
    gate: (promise) => promise,
    eventually: (promise) => promise,
    note: (...seen) => void trace.push(plain(seen, prefix)),
  })
  return trace
}

type Losing = Partial<Record<LosableKind, number>>

/** Sockets that end where the answer to such a request would come in. */
function losingAnswers(losing: Losing): ISocketFactory {
  return ({ host, port, onConnect }) => {
    const socket: Socket = connect({ host, port }, onConnect)
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
    const emit = socket.emit.bind(socket) as (...args: unknown[]) => boolean
    let doomed = false
    socket.write = (...args: unknown[]) => {
      const kind = kindOf(args[0] as Buffer)
      if (kind !== undefined && (losing[kind] ?? 0) > 0) {
        losing[kind] = (losing[kind] ?? 0) - 1
        doomed = true
      }
      return write(...args)
    }
    socket.emit = ((...args: unknown[]) => {
      if (args[0] !== 'data' || !doomed) return emit(...args)
      doomed = false
      socket.destroy()
      return emit('end')
    }) as Socket['emit']
    return socket
  }
}

/** kafkajs writes a request in one piece; behind its size stands the api key. */
function kindOf(request: Buffer): LosableKind | undefined {
  const key = request.readInt16BE(4)
  return (Object.keys(API_KEYS) as LosableKind[]).find((kind) => API_KEYS[kind] === key)
}
