/** The traps of kafkajs, 9 and 10: how it ends, and what a record loses on its way; and two more. */
import type { Consumer, IHeaders } from 'kafkajs'
import { committed, consumerOf, ignore, joinsOf, numbered, outcome, produce, running, type Story } from './staging'

export const shutdownStories: Record<string, Story> = {
  'trap 9: a handler that awaits the stop of its own consumer waits for ever': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(1))
    const consumer = consumerOf(stage)
    let entered = false
    let stopped = false
    let release = (): void => undefined
    const gate = new Promise<void>((resolve) => (release = resolve))
    await running(stage, consumer, {
      eachMessage: async () => {
        entered = true
        const stop = consumer.stop().then(() => void (stopped = true))
        await stage.gate(Promise.race([stop, gate]))
      },
    })
    await stage.until(() => entered)
    let disconnected = false
    const disconnecting = consumer.disconnect().then(() => void (disconnected = true))
    await stage.pass(2500)
    stage.note(stopped, disconnected)
    release()
    await disconnecting
    stage.note(stopped, disconnected, await committed(stage))
  },

  "trap 9: a disconnect during a crash's own disconnect does not keep the restart away": async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(1))
    const consumer = consumerOf(stage, { retry: { retries: 0, initialRetryTime: 100 } })
    let calls = 0
    let disconnecting: Promise<unknown> | undefined
    consumer.on(consumer.events.STOP, () => void (disconnecting ??= outcome(consumer.disconnect())))
    await running(stage, consumer, {
      eachMessage: async () => {
        if (++calls === 1) throw new Error('refused')
      },
    })
    await stage.until(() => disconnecting !== undefined)
    stage.note(await disconnecting, calls)
    await stage.until(() => calls > 1)
    await stage.pass(200)
    stage.note(calls, await committed(stage))
    await consumer.disconnect()
  },

  'trap 9: a stop swallows that its leave was refused': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(1))
    const consumer = consumerOf(stage, { sessionTimeout: 6000, heartbeatInterval: 5000 })
    let entered = false
    await running(stage, consumer, {
      autoCommit: false,
      eachMessage: async () => {
        entered = true
        await stage.sleep(8000)
      },
    })
    await stage.until(() => entered)
    await stage.pass(7500)
    // The broker has thrown it out by now, and knows no such member any more.
    stage.note(await outcome(stage.eventually(consumer.stop())), await committed(stage))
    await consumer.disconnect()
  },

  'trap 10: headers as they come back, and why they cannot be sent again': async (stage) => {
    await stage.create('orders')
    const sent: IHeaders = { b: '1', '10': 'x', '2': 'y', dup: ['1', Buffer.from('2')], none: [], '': 'empty name' }
    const odd: IHeaders = { constructor: 'c' as never, toString: 't' as never, ['__proto__']: 'p' }
    for (const headers of [sent, odd]) {
      const messages = [{ value: 'x', headers }]
      await produce(stage, messages)
    }
    const consumer = consumerOf(stage)
    const producer = stage.kafka.producer()
    await producer.connect()
    let seen = 0
    await running(stage, consumer, {
      eachMessage: async ({ message }) => {
        const { headers = {} } = message
        stage.note(Object.entries(headers), Object.getPrototypeOf(headers) === Object.prototype)
        const messages = [{ value: message.value, headers }]
        const again = (await outcome(producer.send({ topic: stage.topic(), messages }))) as Error
        stage.note(again instanceof Error ? again.name : 'sent')
        if (++seen > 2) consumer.pause([{ topic: stage.topic() }])
      },
    })
    await stage.until(() => seen > 2)
    await consumer.disconnect()
    await producer.disconnect()
  },

  "also: round robin shares out the leader's topics, whoever subscribed to what": async (stage) => {
    const seen: string[] = []
    const members: Consumer[] = []
    const told: unknown[] = []
    for (const name of ['a', 'b']) {
      await stage.create(name, 2)
      const at = [0, 1].map((partition) => ({ value: 'x', partition }))
      await produce(stage, at, stage.topic(name))
      const member = consumerOf(stage, {}, stage.other())
      members.push(member)
      member.on(member.events.RECEIVED_UNSUBSCRIBED_TOPICS, ({ payload }) => told.push([name, payload]))
    }
    const [first, second] = members as [Consumer, Consumer]
    const [joins, joined] = [joinsOf(first), joinsOf(second)]
    const config = (name: string) => ({
      eachMessage: async ({ topic }: { topic: string }) => void seen.push(`${name} of ${topic}`),
    })
    await running(stage, first, { eachMessage: ignore }, stage.topic('a'))
    await stage.pass(200)
    const coming = running(stage, second, config('second'), stage.topic('b'))
    await stage.until(() => joins.count === 2 && joined.count === 1)
    await coming
    await stage.pass(600)
    stage.note(told, seen, await committed(stage, [stage.topic('a'), stage.topic('b')]))
    await second.disconnect()
    await first.disconnect()
  },

  'also: a pattern with /g skips the topic after one that it found': async (stage) => {
    for (const name of ['a1', 'a2', 'a3', 'a4']) await stage.create(name)
    // Topics of others on the same broker must not move the pattern along.
    const own = stage.topic('')
    class Pattern extends RegExp {
      override test(text: string): boolean {
        return text.startsWith(own) && super.test(text)
      }
    }
    for (const flags of ['', 'g']) {
      const consumer = consumerOf(stage, { groupId: stage.group(flags) })
      let found = 0
      consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
        found = Object.keys(payload.memberAssignment).length
      })
      await consumer.connect()
      await consumer.subscribe({ topics: [new Pattern(`^${own.replaceAll('.', '\\.')}a\\d$`, flags)] })
      await consumer.run({ eachMessage: ignore })
      stage.note(flags, found)
      await stage.pass(200)
      await consumer.disconnect()
    }
  },
}
