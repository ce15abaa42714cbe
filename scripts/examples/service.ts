/**
 * The life of a service as a platform leads it, told to each example that is one: it starts, is asked whether it is ready,
 * gets records, one of which fails once, cannot write a copy for a while, and is ended by SIGTERM with a handler at work.
 * What must hold of it is asserted here; whatever does not is the returned text.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Kafka, logLevel, type Admin, type ConfigResourceTypes } from 'kafkajs'
import { openBank, type Bank } from './bank'
import type { UserSide } from './as-user'

export interface ServiceExample {
  readonly path: string
  /** Whether it has `/live` and `/ready`. */
  readonly probes: boolean
  /** Whether it listens before the consumer starts, so that it can be asked meanwhile. */
  readonly listensFirst: boolean
}

const PARTITIONS = 3
/** How long each step may take, ms: the machine may be busy. */
const PATIENCE = 30_000

export async function liveThrough(example: ServiceExample, side: UserSide, brokers: readonly string[]): Promise<void> {
  // The broker may be shared: the names of the example are everybody's.
  const id = randomBytes(4).toString('hex')
  const [topic, groupId] = [`orders-${id}`, `billing-${id}`]
  const script = side.place(example.path, (source) => {
    const renamed = source
      .replaceAll("'orders'", `'${topic}'`)
      .replaceAll("groupId: 'billing'", `groupId: '${groupId}'`)
    assert(
      renamed.includes(topic) && renamed.includes(groupId),
      'the example names no topic orders and no group billing',
    )
    return renamed
  })
  const kafka = new Kafka({ clientId: 'examples', brokers: [...brokers], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  const producer = kafka.producer({
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  })
  const bank = await openBank()
  const port = await freePort()
  await Promise.all([admin.connect(), producer.connect()])
  await admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS }], waitForLeaders: true })

  const child = spawn(process.execPath, [script], {
    env: { ...process.env, KAFKA_BROKERS: brokers.join(), BANK_URL: bank.url, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  const told: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => told.push(part.toString()))

  let count = 0
  async function produce(order: string): Promise<void> {
    await producer.send({ topic, acks: -1, messages: [{ partition: count++ % PARTITIONS, value: order }] })
  }

  try {
    const probe = example.probes ? `http://127.0.0.1:${port}` : undefined
    if (probe) await becomesReady(probe, example.listensFirst)

    for (const order of ['o-1', 'o-2', 'o-fails-once', 'o-4']) {
      if (order === 'o-fails-once') bank.refuseOnce(order)
      await produce(order)
    }
    await until('all orders are charged', () => succeeded(bank).size === 4)
    const tries = bank.charges.filter(({ order }) => order === 'o-fails-once')
    assert.deepEqual(
      tries.map(({ status }) => status),
      [503, 200],
      'an order that fails once is tried twice',
    )
    const waited = (tries[1]?.at ?? 0) - (tries[0]?.at ?? 0)
    assert(waited >= 1000, `the retry came after ${waited} ms, not after the schedule's second`)

    if (probe) {
      // A topic that is compacted takes no record without a key.
      await cleanUpBy(admin, `${topic}.retry.1s`, 'compact')
      let blocked = ''
      await until('a copy that cannot be written makes it unready', async () => {
        // The broker takes a moment to heed its new setting: where the copy was written and is through, another is tried.
        if (blocked === '' || succeeded(bank).has(blocked)) {
          blocked = `o-blocked-${count}`
          bank.refuseOnce(blocked)
          await produce(blocked)
        }
        const { status, body } = await ask(`${probe}/ready`)
        return status === 503 && body.includes('degraded') && body.includes('cannot be published')
      })
      assert.equal((await ask(`${probe}/live`)).status, 200, 'it is alive all the same: a restart would mend nothing')
      await cleanUpBy(admin, `${topic}.retry.1s`, 'delete')
      await until('the copy is through, and the order charged', () => succeeded(bank).has(blocked))
      await until('it is ready again', async () => (await ask(`${probe}/ready`)).status === 200)
    }

    const release = bank.hold('o-held')
    await produce('o-held')
    await within('the last order is at work', bank.heldNow('o-held'))
    child.kill('SIGTERM')
    let saysStopping = false
    if (probe) {
      // By its own word, or because it does not answer any more.
      await until('it is unready while it stops', async () => {
        const { status, body } = await ask(`${probe}/ready`)
        saysStopping ||= body.includes('"stopping"')
        return status !== 200
      })
    }
    await produce('o-late')
    release()
    assert.deepEqual(await within('it ends', ended), [0, null], 'it ends by itself, with exit code 0')

    assert(succeeded(bank).has('o-held'), 'the handler at work was let to its end')
    const twice = [...succeeded(bank)].filter(
      (order) => bank.charges.filter((charge) => charge.order === order && charge.status === 200).length > 1,
    )
    assert.deepEqual(twice, [], 'a clean stop makes nothing come twice')
    if (saysStopping) assert(!succeeded(bank).has('o-late'), 'once it stops, what comes is left to others')
    const left = succeeded(bank).has('o-late') ? 0 : 1
    assert.equal(await lag(admin, groupId, topic), left, 'committed is what was done, and nothing else')
    assert.equal(await lag(admin, `${groupId}.retry.1s`, `${topic}.retry.1s`), 0, 'all retries are committed')
    const { groups } = await admin.describeGroups([groupId])
    assert.deepEqual(groups[0]?.members, [], 'it has left its group')
  } catch (error) {
    throw new Error(`${String(error)}\n${told.join('')}`, { cause: error })
  } finally {
    child.kill('SIGKILL')
    await Promise.allSettled([bank.close(), producer.disconnect(), admin.disconnect()])
  }
}

async function becomesReady(probe: string, listensFirst: boolean): Promise<void> {
  const seen = new Set<string>()
  await until('it is ready', async () => {
    const { status, body } = await ask(`${probe}/ready`)
    if (status === 503) seen.add((JSON.parse(body) as { status: string }).status)
    return status === 200
  })
  if (listensFirst) assert(seen.has('starting'), 'it is unready until the consumer has started, and says so')
  assert.equal((await ask(`${probe}/live`)).status, 200)
}

const succeeded = (bank: Bank): Set<string> =>
  new Set(bank.charges.filter(({ status }) => status === 200).map(({ order }) => order))

/** Status 0 where nobody answers. */
async function ask(url: string): Promise<{ status: number; body: string }> {
  try {
    const response = await fetch(url, { headers: { connection: 'close' }, signal: AbortSignal.timeout(PATIENCE) })
    return { status: response.status, body: await response.text() }
  } catch {
    return { status: 0, body: '' }
  }
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`after ${PATIENCE / 1000} s it does not hold that ${what}`)
    await sleep(20)
  }
}

async function within<T>(what: string, work: Promise<T>): Promise<T> {
  const patience = new AbortController()
  const late = sleep(PATIENCE, undefined, { signal: patience.signal }).then(() => {
    throw new Error(`after ${PATIENCE / 1000} s it does not hold that ${what}`)
  })
  late.catch(() => undefined)
  return Promise.race([work, late]).finally(() => patience.abort())
}

/** Records that the group has not committed, over all partitions. */
async function lag(admin: Admin, groupId: string, topic: string): Promise<number> {
  const ends = new Map((await admin.fetchTopicOffsets(topic)).map(({ partition, high }) => [partition, BigInt(high)]))
  const committed = (await admin.fetchOffsets({ groupId, topics: [topic] }))[0]?.partitions ?? []
  let open = 0n
  for (const [partition, end] of ends) {
    const place = BigInt(committed.find((each) => each.partition === partition)?.offset ?? -1n)
    open += end - (place < 0n ? 0n : place)
  }
  return Number(open)
}

/** The topic's other settings go back to the broker's defaults, which is good enough here. */
async function cleanUpBy(admin: Admin, topic: string, policy: 'compact' | 'delete'): Promise<void> {
  const configEntries = [{ name: 'cleanup.policy', value: policy }]
  // kafkajs does not let Node see the export ConfigResourceTypes by its name.
  const type: ConfigResourceTypes.TOPIC = 2
  await admin.alterConfigs({ validateOnly: false, resources: [{ type, name: topic, configEntries }] })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
