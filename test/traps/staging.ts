/** What the stories of this folder share beside the stage of test/unit/testing/alike, on which they are told. */
import type { Consumer, ConsumerRunConfig, PartitionAssigner } from 'kafkajs'
import { encodeAssignment } from '../../src/testing/member-protocol'
import { consumerOf, type Stage, type Story } from '../unit/testing/alike/stage'

export * from '../unit/testing/alike/stage'

export const ignore = async (): Promise<void> => undefined

/** A story about the time that kafkajs's polls take: told to a fake whose polls take it too. */
export const slowly = (story: Story): Story => Object.assign(story, { slowPolls: true })

/** Connected, subscribed to all of the topic, joined. */
export async function running(
  stage: Stage,
  consumer: Consumer,
  config: ConsumerRunConfig,
  topic = stage.topic(),
): Promise<void> {
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run(config)
}

export function joinsOf(consumer: Consumer): { count: number } {
  const joins = { count: 0 }
  consumer.on(consumer.events.GROUP_JOIN, () => void joins.count++)
  return joins
}

/** Who gets what: by member, then by topic. The story changes it as it goes, and the next generation follows. */
export type Plan = Record<string, Record<string, number[]>>

/** An assigner whose members tell their names, and get what the plan has for them. */
export const steered =
  (plan: Plan, topics: string[], name: string): PartitionAssigner =>
  ({ cluster }) => ({
    name: 'Steered',
    version: 0,
    async assign({ members }) {
      await cluster.addMultipleTargetTopics(topics)
      return members.map(({ memberId, memberMetadata }) => ({
        memberId,
        memberAssignment: encodeAssignment(plan[memberMetadata.toString()] ?? {}),
      }))
    },
    protocol: () => ({ name: 'Steered', metadata: Buffer.from(name) }),
  })

/** Two members of a group whose shares the story decides; the second comes when told to. */
export function pair(stage: Stage, plan: Plan, names = ['orders'], kafka = stage.other(), groupId = stage.group()) {
  const topics = names.map((name) => stage.topic(name))
  const member = (name: string, of = stage.kafka): Consumer =>
    consumerOf(stage, { groupId, partitionAssigners: [steered(plan, topics, name)], heartbeatInterval: 100 }, of)
  const [first, second] = [member('first'), member('second', kafka)]
  const [joins, joined] = [joinsOf(first), joinsOf(second)]
  return {
    first,
    second,
    joins,
    async secondComes(config: Parameters<Consumer['run']>[0] = { eachMessage: ignore }): Promise<void> {
      const before = joins.count
      const coming = running(stage, second, config)
      await stage.until(() => joined.count > 0 && joins.count > before)
      await coming
    },
    async secondGoes(): Promise<void> {
      const before = joins.count
      await second.disconnect()
      await stage.until(() => joins.count > before)
    },
  }
}
