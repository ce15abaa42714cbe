import { createFakeKafka } from '../../../../src/testing'
import { plain, type Story } from './stage'

export async function onFake(story: Story): Promise<unknown[]> {
  const kafka = createFakeKafka({ slowPolls: story.slowPolls ?? false, cleanEvery: '1s' })
  const prefix = 'fake.'
  const trace: unknown[] = []
  const { clock } = kafka
  await story({
    kafka,
    other: (options = {}) => kafka.client(options),
    topic: (name = 'orders') => prefix + name,
    group: (name = 'billing') => prefix + name,
    create: async (name, partitions = 1, config = {}) => kafka.createTopic(prefix + name, { partitions, config }),
    loseAnswers(kind, times = 1) {
      for (let i = 0; i < times; i++) kafka.broker.next(kind).drop()
    },
    now: () => clock.now(),
    pass: (ms) => clock.advance(ms),
    async until(condition) {
      await clock.settle()
      for (let i = 0; !condition(); i++) {
        if (i > 1000) throw new Error('it never came to that')
        await clock.advance(50)
      }
    },
    sleep: (ms) => clock.sleep(ms),
    gate: (promise) => clock.park(promise),
    async eventually(promise) {
      let settled = false
      const end = (): void => void (settled = true)
      promise.then(end, end)
      while (!settled) await clock.advance(50)
      return promise
    },
    note: (...seen) => void trace.push(plain(seen, prefix)),
  })
  return trace
}
