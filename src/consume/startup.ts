/** What must be known before the first group is joined: that the broker is there, the topics fit, the groups are free. */
import type { Settings } from '../config'
import { RetrylineError, isRetrylineError } from '../errors'
import { errorText, type Emitter } from '../observe'
import type { Clock, Driver, Publisher, TopicAdmin } from '../ports'
import type { Topology } from '../topology'
import { withFormerTiers } from './former-tiers'
import { takeGroups } from './groups-in-process'
import { verifyTopics } from './verify-topics'

export interface StartupOptions {
  readonly settings: Settings
  readonly driver: Driver
  readonly admin: TopicAdmin
  readonly publisher: Publisher
  readonly clock: Clock
  readonly emitter: Emitter
}

export interface Startup {
  /** Throws RETRYLINE_CONNECT, RETRYLINE_TOPICS or RETRYLINE_GROUP_IN_USE. `release` gives the groups back. */
  prepare(): Promise<{ topology: Topology; release: () => void }>
  /** The partition count of a topic: those of the topology are known, others are looked up once. */
  count(topic: string): Promise<number>
  /** The partitions of these topics, as they were last looked up; 0 where a topic was not. */
  known(topics: Iterable<string>): number
  /** Looks the count up anew; undefined for a topic that does not exist. */
  recount(topic: string): Promise<number | undefined>
  topology(): Topology
}

export function createStartup({ settings, driver, admin, publisher, clock, emitter }: StartupOptions): Startup {
  const counts = new Map<string, number>()
  let { topology } = settings

  async function recount(topic: string): Promise<number | undefined> {
    const count = (await admin.partitions([topic])).get(topic)
    if (count !== undefined) counts.set(topic, count)
    return count
  }

  async function prepare(): Promise<{ topology: Topology; release: () => void }> {
    settings.warnings.forEach((warning) => settings.logger.warn(warning))
    await connect()
    topology = await withFormerTiers(settings.topology, settings.topologyInput, admin, emitter)
    const verified = await verifyTopics({
      admin,
      topology,
      mode: settings.topicSetup,
      clock,
      explainConnect: (error) => driver.explainConnect?.(error),
      warn: (problem) => settings.logger.warn(problem),
    })
    for (const [topic, count] of verified) counts.set(topic, count)
    if (settings.delivery === 'exactly-once') {
      // Ids of different groups may be allowed apart.
      for (const { groupId } of [topology, ...topology.tiers]) await tryTransactions(groupId)
    }
    const groups = [topology.groupId, ...topology.tiers.map(({ groupId }) => groupId)]
    const release =
      settings.sameGroupInProcess === 'allow' ? () => undefined : takeGroups(await admin.clusterId(), groups)
    return { topology, release }
  }

  /** What a partition would find out one day, when its first record fails. */
  async function tryTransactions(groupId: string): Promise<void> {
    const id = `${groupId}/start`
    const transactor = driver.transactor(id)
    try {
      await transactor.takeOver()
    } catch (error) {
      if (isRetrylineError(error)) throw error
      const mend =
        'check that the brokers keep the state of transactions (transaction.state.log.replication.factor, .min.isr)'
      throw new RetrylineError(
        'RETRYLINE_CONNECT',
        `delivery 'exactly-once' needs transactions, and '${id}' could begin none (${errorText(error)}); ${mend}`,
        { cause: error },
      )
    } finally {
      await transactor.disconnect()
    }
  }

  async function connect(): Promise<void> {
    const publishes = settings.delivery === 'at-least-once'
    // Side by side. Waited for both: what goes on to connect after its start has failed would be in the way of the stop.
    const both = await Promise.allSettled([admin.connect(), publishes ? publisher.connect() : undefined])
    for (const one of both) {
      if (one.status === 'fulfilled') continue
      const error: unknown = one.reason
      if (isRetrylineError(error)) throw error
      throw new RetrylineError(
        'RETRYLINE_CONNECT',
        `${driver.client} could not connect (${errorText(error)}); ` +
          (driver.explainConnect?.(error) ??
            'check the brokers, ssl and sasl of the Kafka client that was given as kafka'),
        { cause: error },
      )
    }
  }

  return {
    prepare,
    async count(topic) {
      const count = counts.get(topic) ?? (await recount(topic))
      if (count === undefined) {
        throw new RetrylineError('RETRYLINE_PUBLISH', `topic '${topic}' does not exist; create it first`)
      }
      return count
    },
    known: (topics) => [...topics].reduce((sum, topic) => sum + (counts.get(topic) ?? 0), 0),
    recount,
    topology: () => topology,
  }
}
