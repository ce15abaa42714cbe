import { createFakeKafka } from '../../../../../src/testing'
import { fakeCourse } from '../fake-course'
import { plainNodes, RETRY, type NodesStory } from './stage'

const PORTS = [9092, 9093, 9094]

export async function onFakeNodes(story: NodesStory): Promise<unknown[]> {
  const kafka = createFakeKafka({ brokers: 3, retry: RETRY })
  const prefix = 'fake.'
  const trace: unknown[] = []
  const { broker } = kafka
  await story({
    kafka,
    other: (options = {}) => kafka.client({ retry: RETRY, ...options }),
    topic: (name = 'orders') => prefix + name,
    group: (name = 'billing') => prefix + name,
    create: async (name, partitions, { replicas = 3, config = {} } = {}) =>
      kafka.createTopic(prefix + name, { partitions, replicationFactor: replicas, config }),
    cutNextPublish: (node) => broker.next('publish', { node }).fail('CONNECTION_CLOSED'),
    moveLeader: async (topic, partition, node) => broker.moveLeader(topic, partition, node),
    down: async (node) => broker.down(node),
    up: async (node) => broker.up(node),
    ...fakeCourse(kafka),
    note: (...seen) => void trace.push(plainNodes(seen, prefix, PORTS)),
  })
  return trace
}
