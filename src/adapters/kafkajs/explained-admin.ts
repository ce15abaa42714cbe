/** An admin client whose refusals say what was asked for, of what, and by whom. */
import type { AclOperation, NewTopic, TopicAdmin } from '../../ports'
import { deniedType, type Denials } from './denied'

export function explainedAdmin(admin: TopicAdmin, denials: Denials): TopicAdmin {
  const explain = (error: unknown, operation: AclOperation, topics: readonly string[]): Promise<unknown> =>
    denials.explain(error, [{ operation, resourceType: 'topic', names: topics }])

  /**
   * kafkajs fails the whole request for one topic that is refused, and does not say which: so each is asked about alone.
   */
  async function ofTopics<T>(
    topics: readonly string[],
    operation: AclOperation,
    ask: (topics: readonly string[]) => Promise<T>,
  ): Promise<T> {
    try {
      return await ask(topics)
    } catch (error) {
      if (deniedType(error) === undefined) throw error
      const each = await Promise.allSettled(topics.length > 1 ? topics.map((topic) => ask([topic])) : [])
      const refused = topics.filter((_, i) => {
        const one = each[i]
        return one?.status === 'rejected' && deniedType(one.reason) !== undefined
      })
      throw await explain(error, operation, refused.length > 0 ? refused : topics)
    }
  }

  return {
    ...admin,
    partitions: (topics) => ofTopics(topics, 'Describe', (some) => admin.partitions(some)),
    settings: (topics) => ofTopics(topics, 'DescribeConfigs', (some) => admin.settings(some)),
    async createTopics(topics) {
      try {
        await admin.createTopics(topics)
      } catch (error) {
        throw await explain(...creationDenied(error, topics))
      }
    },
    async committed(groupId, topics) {
      try {
        return await admin.committed(groupId, topics)
      } catch (error) {
        throw await denials.explain(error, [
          { operation: 'Describe', resourceType: 'group', names: [groupId] },
          { operation: 'Describe', resourceType: 'topic', names: topics },
        ])
      }
    },
    ranges: (topic) => ofTopics([topic], 'Describe', () => admin.ranges(topic)),
    offsetsAt: (topic, time) => ofTopics([topic], 'Describe', () => admin.offsetsAt(topic, time)),
  }
}

/** The refusals among what kafkajs has gathered, each with its topic; others (somebody was faster) stand beside them. */
function creationDenied(error: unknown, asked: readonly NewTopic[]): [unknown, AclOperation, string[]] {
  const { errors } = (error ?? {}) as { errors?: readonly { topic?: unknown }[] }
  const refused = (Array.isArray(errors) ? errors : []).filter((one) => deniedType(one) !== undefined)
  const names = asked.map(({ topic }) => topic)
  if (refused.length === 0) return [error, 'Create', names]
  return [refused[0], 'Create', names.filter((name) => refused.some(({ topic }) => topic === name))]
}
