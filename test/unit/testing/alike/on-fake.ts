import { createFakeKafka } from '../../../../src/testing'
import { fakeCourse } from './fake-course'
import { plain, type Story } from './stage'

export async function onFake(story: Story): Promise<unknown[]> {
  const kafka = createFakeKafka({ slowPolls: story.slowPolls ?? false, cleanEvery: '1s' })
  const prefix = 'fake.'
  const trace: unknown[] = []
  await story({
    kafka,
    other: (options = {}) => kafka.client(options),
    topic: (name = 'orders') => prefix + name,
    group: (name = 'billing') => prefix + name,
    create: async (name, partitions = 1, config = {}) => kafka.createTopic(prefix + name, { partitions, config }),
    loseAnswers(kind, times = 1) {
      for (let i = 0; i < times; i++) kafka.broker.next(kind).drop()
    },
    ...fakeCourse(kafka),
    note: (...seen) => void trace.push(plain(seen, prefix)),
  })
  return trace
}
