import { describe, expect, it, vi } from 'vitest'
import { explore, type ExploreError, type FakeClient, type World } from '../../src/testing'
import { storm } from './storm'

const failure = (options: Parameters<typeof explore>[0]): Promise<ExploreError> =>
  explore({ print: () => undefined, ...options }).then(
    () => {
      throw new Error('it found nothing')
    },
    (e: ExploreError) => e,
  )

/** A plain kafkajs consumer that commits each message by itself. */
function plain(client: FakeClient, handle: (place: string) => unknown) {
  const consumer = client.consumer({ groupId: 'plain' })
  return {
    async start() {
      await consumer.connect()
      await consumer.subscribe({ topic: 'orders', fromBeginning: true })
      await consumer.run({
        eachMessage: async ({ partition, message }) => void (await handle(`${partition}@${message.offset}`)),
      })
    },
    stop: () => consumer.disconnect(),
  }
}

const orders = { topics: { orders: 2 } }

describe('explore', () => {
  it('tells the same story for the same seed, line by line, and another for another', { timeout: 60_000 }, async () => {
    const traces = new Set<string>()
    for (const seed of [3, 11, 42]) {
      const first = (await explore({ seed, scenario: storm() })).trace.join('\n')
      // What else the process does meanwhile must not show: garbage, other timers, other brokers.
      const noise = setInterval(() => new Array(10_000).fill({}).map((one: object) => ({ ...one })), 1)
      const [second, third] = await Promise.all([
        explore({ seed, scenario: storm() }),
        explore({ seed, scenario: storm() }),
      ])
      clearInterval(noise)
      expect(first.split('\n').length).toBeGreaterThan(100)
      expect(second.trace.join('\n')).toBe(first)
      expect(third.trace.join('\n')).toBe(first)
      traces.add(first)
    }
    expect(traces.size).toBe(3)
  })

  it('gives a user interleavings of a plain kafkajs program: the order in which two members get there differs', async () => {
    const ends = new Set<string>()
    await explore({
      seeds: 30,
      kafka: orders,
      async scenario(world) {
        const seen: string[] = []
        const join = (): unknown =>
          world.join((client, name) =>
            plain(client, async (place) => {
              await world.work()
              seen.push(`${name} ${place}`)
            }),
          )
        join()
        join()
        for (const partition of [0, 1]) world.kafka.produce('orders', { partition, value: 'a' })
        await world.until(() => new Set(seen.map((one) => one.slice(3))).size === 2, 'both are handled')
        ends.add(seen.join())
        for (const one of world.members) await world.run(one.stop())
      },
    })
    expect(ends.size).toBeGreaterThan(2)
  })

  /** Broken wherever the answer of the third or the fifth fault's request is what the seed says. */
  const needsTwo = async (world: World): Promise<void> => {
    const hit = new Set<string>()
    for (let n = 0; n < 8; n++) world.inject(`fault ${n}`, () => hit.add(`${n}`))
    await world.step()
    if (hit.has('2') && hit.has('5')) world.broken('P1', 'two and five met')
  }

  it('finds the fewest faults that break it, prints the seed and throws an error that carries it', async () => {
    const print = vi.fn()
    const error = await failure({ scenario: needsTwo, seeds: 5, from: 7, print })
    expect(error).toMatchObject({
      name: 'ExploreError',
      code: 'RETRYLINE_TESTING',
      seed: 7,
      promise: 'P1',
      without: [0, 1, 3, 4, 6, 7],
    })
    expect(error.message.split('\n')).toEqual([
      'seed 7 breaks P1: two and five met',
      'Run it again: explore({ seed: 7, without: [0, 1, 3, 4, 6, 7], scenario })',
      'The last 3 events:',
      '       0 ms  !! fault 2: fault 2',
      '       0 ms  !! fault 5: fault 5',
      expect.stringMatching(/ms {2}\*\* P1 is broken: two and five met$/),
    ])
    expect(print.mock.calls).toEqual([[error.message]])
  })

  it('replays one seed, without some of its faults', async () => {
    expect(await failure({ scenario: needsTwo, seed: 7 })).toMatchObject({ seed: 7, without: [] })
    expect(await failure({ scenario: needsTwo, seed: 7, without: [0] })).toMatchObject({ seed: 7, without: [0] })
    expect(await explore({ scenario: needsTwo, seed: 7, without: [2] })).toMatchObject({ seeds: 1, faults: 8 })
  })

  it('carries what the scenario threw, with at most so many events', async () => {
    const cause = new Error('expected 1 to be 2')
    const scenario = async (world: World): Promise<void> => {
      for (let n = 0; n < 100; n++) world.note(`note ${n}`)
      throw cause
    }
    const error = await failure({ scenario, seeds: 2, tail: 5 })
    expect(error).toMatchObject({ seed: 1, promise: undefined, cause })
    expect(error.message).toContain('seed 1 breaks the scenario: expected 1 to be 2')
    expect(error.message.split('\n').slice(3)).toEqual([95, 96, 97, 98, 99].map((n) => `       0 ms  note ${n}`))
    expect(error.trace).toHaveLength(100)
  })

  it('ends a run whose scenario waits for what never comes: in virtual time, and in real time', async () => {
    const never = await failure({ scenario: (world) => world.until(() => false, 'Godot', '1h'), seed: 1 })
    expect(never.message).toContain('seed 1 breaks progress: never happened within 1h: Godot')
    const stuck = await failure({ scenario: () => new Promise(() => undefined), seed: 1, patience: 50 })
    expect(stuck.message).toContain('does not end within 50 real ms')
  })

  it('kills a member: its session runs out, the other takes over, and its handlers never end', async () => {
    await explore({
      seeds: 20,
      kafka: orders,
      async scenario(world) {
        const ended: string[] = []
        const join = () =>
          world.join((client, name) =>
            plain(client, async (place) => {
              await world.work()
              await world.members.find((one) => one.name === name)?.breathe()
              ended.push(`${name} ${place}`)
            }),
          )
        const first = join()
        await world.run(first.started)
        const second = join()
        await world.run(second.started)
        await world.until(() => world.kafka.broker.members('plain').length === 2, 'both are in')
        first.kill()
        expect(first.state).toBe('dead')
        for (const partition of [0, 1]) world.kafka.produce('orders', { partition, value: 'a' })
        await world.until(() => new Set(ended).size === 2, 'the second handles both')
        expect(ended.every((one) => one.startsWith('m2 '))).toBe(true)
        await world.run(second.stop())
      },
    })
  })

  it('lets the session of a killed member run out that had nothing to fetch', async () => {
    await explore({
      seeds: 5,
      kafka: orders,
      async scenario(world) {
        const idle = world.join((client) => {
          const consumer = client.consumer({ groupId: 'plain' })
          return {
            async start() {
              await consumer.connect()
              await consumer.subscribe({ topic: 'orders' })
              await consumer.run({ eachMessage: async () => undefined })
              consumer.pause([{ topic: 'orders' }])
            },
            stop: () => consumer.disconnect(),
          }
        })
        await world.run(idle.started)
        await world.advance('1m')
        idle.kill()
        await world.until(() => world.kafka.broker.members('plain').length === 0, 'it is dropped', '1m')
      },
    })
  })

  it('refuses what it does not understand', async () => {
    for (const options of [undefined, {}, { seeds: -1, scenario: needsTwo }, { seed: 1.5, scenario: needsTwo }]) {
      await expect(explore(options as never)).rejects.toMatchObject({ code: 'RETRYLINE_TESTING' })
    }
  })
})
