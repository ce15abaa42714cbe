/** What `poison` and `retry-storm` have in common: the systems, the records that one run uses up, and Spring. */
import { asyncRetry } from '../peers/async-retry'
import { naive } from '../peers/naive'
import { retryline } from '../peers/retryline'
import { runJvm, type FromJvm } from './jvm'
import { createTopics, leftWrong, numbered, produce } from './kafka'
import type { Counts, RunContext, Suite } from './suite'
import type { System } from './system'

export const systems: Record<string, System> = { retryline: retryline(), naive, 'kafkajs-async-retry': asyncRetry }

/** Spring's retry topics by their defaults, and without the polls that it makes again after each failure. */
const JVM: Record<string, string> = { spring: 'as-it-comes', 'spring-tuned': 'tuned' }
export const jvm = Object.keys(JVM)

export interface Own {
  topic: string
  records: number
}

/** `records` with a key each, so that those that fail are spread over all partitions. */
export const prepareRun =
  (name: string, sizes: { small: number; whole: number }): NonNullable<Suite['prepareRun']> =>
  async (_system, { brokers, small, id }): Promise<Own> => {
    const topic = `${name}-${id}`
    const records = small ? sizes.small : sizes.whole
    await createTopics(brokers, [topic])
    await produce(brokers, topic, records, (index) => ({ key: `key-${index}`, value: numbered(index, 200) }))
    return { topic, records }
  }

interface SpringJob {
  warmUp: number
  /** Each record at its first attempt, or one in so many for good. */
  fails: 'once' | number
  delay: number
  deadLetters?: number
}

/** Runs Spring where that is the system; undefined where it is another. */
export async function spring(
  name: string,
  { brokers, own }: RunContext,
  { warmUp, fails, delay, deadLetters = 0 }: SpringJob,
): Promise<(Pick<FromJvm, 'value' | 'fetch' | 'late'> & { counts: Counts }) | undefined> {
  const how = JVM[name]
  if (how === undefined) return undefined
  const { topic, records } = own as Own
  const args = [brokers.join(), topic, topic, records, warmUp, fails, delay, how]
  const { value, fetch, late, ...counts } = await runJvm('Spring', args)
  // What Spring's retry topics are called, where all waits are the same.
  const reads = [
    { topic, groupId: topic },
    { topic: `${topic}-retry`, groupId: `${topic}-retry` },
  ]
  const problems = await leftWrong(brokers, { reads, deadLetters: `${topic}-dlt` }, deadLetters)
  return { value, fetch, ...(late && { late }), counts: { expected: records, ...counts, problems } }
}
