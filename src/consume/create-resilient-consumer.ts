/** The one place where the parts are joined. What each does is in its own file. */
import { createClassifier } from '../classify'
import { resolveOptions, type ResilientConsumerOptions, type Settings, type StandardSchema } from '../config'
import { createOutbox } from '../deliver'
import { containedLogger, createEmitter, errorText, type AnyListener, type EventType, type Listener } from '../observe'
import { systemClock, systemRandom, type Driver, type Logger } from '../ports'
import type { Topology } from '../topology'
import { Alone } from './alone'
import { DeadLetterLimit } from './dead-letter-limit'
import { createDecoder } from './decode'
import { makesTransactions } from './exactly-once'
import { Group } from './group'
import { groupHealth, problemsOf, type Health } from './health'
import { createLifecycle, type Running, type StopOptions, type StopReport } from './lifecycle'
import { Outages } from './outages'
import { createPauses, type PauseTarget } from './pauses'
import { createProcessor } from './process-record'
import { createStartup } from './startup'

export interface ResilientConsumer extends AsyncDisposable {
  /**
   * Checks every topic, joins every group, and resolves when that is done. Once only.
   * Throws RETRYLINE_CONNECT, RETRYLINE_TOPICS, RETRYLINE_GROUP_IN_USE or RETRYLINE_STATE; after any of these nothing of
   * it runs any more.
   */
  start(): Promise<void>
  /**
   * Takes no more work, lets running handlers finish up to `shutdownTimeout`, then aborts their signals and leaves what
   * does not settle, uncommitted; commits; disconnects. Never rejects; a second call gets the first one's report. Called
   * from inside a handler it resolves at once, and the stop goes on when that handler has ended.
   */
  stop(options?: StopOptions): Promise<StopReport>
  /**
   * Starts no more handlers, for one main topic (its retries too) or for all. Memberships and offsets are kept. Throws
   * RETRYLINE_STATE for a topic that is not one of its main topics.
   */
  pause(target?: PauseTarget): void
  resume(target?: PauseTarget): void
  /** How every group and partition is; fit for JSON. Cheap enough for a probe every second. */
  health(): Health
  /** Listens to one kind of event, or to `all`; returns the function that stops it. Throws RETRYLINE_STATE for others. */
  on<E extends EventType>(type: E, listener: Listener<E>): () => void
  on(type: 'all', listener: AnyListener): () => void
  /** Every topic that it reads or writes, and what for. */
  topics(): { readonly topic: string; readonly role: 'main' | 'retry' | 'dead-letter' }[]
}

export type MakeDriver = (kafka: Settings['kafka'], logger: Logger) => Driver

let instances = 0

/** Throws RETRYLINE_CONFIG, with every problem of the options in `problems`. Connects to nothing. */
export function createConsumer<V = unknown, S extends StandardSchema | undefined = StandardSchema<V> | undefined>(
  options: ResilientConsumerOptions<V, S>,
  makeDriver: MakeDriver,
): ResilientConsumer {
  const resolved = resolveOptions(options)
  const settings: Settings = { ...resolved, logger: containedLogger(resolved.logger) }
  const driver = makeDriver(settings.kafka, settings.logger)
  const clock = driver.clock ?? systemClock
  const random = driver.random ?? systemRandom
  const { groupId, logger, hooks } = settings
  const emitter = createEmitter({ groupId, hooks, logger, clock })
  const admin = driver.admin()
  const publisher = driver.publisher()
  const classifier = createClassifier({
    classify: settings.classify,
    unknownErrors: settings.unknownErrors,
    now: () => clock.now(),
    onProblem: ({ message, cause }) => {
      const error = cause === undefined ? message : `${message}: ${errorText(cause)}`
      emitter.emit('problem', { where: 'classify', error })
    },
  })
  const startup = createStartup({ settings, driver, admin, publisher, clock, emitter })
  const outbox = createOutbox({
    publisher,
    clock,
    random,
    emitter,
    timeoutMs: settings.publishTimeoutMs,
    isTooLarge: (error) => driver.isTooLarge(error),
    countPartitions: (topic) => startup.recount(topic),
  })
  const makeTransactions =
    settings.delivery === 'exactly-once'
      ? makesTransactions({
          driver,
          clock,
          random,
          emitter,
          settings,
          recount: (topic) => startup.recount(topic),
        })
      : undefined
  // Unique in the process: a stop called from the handler of another consumer is none of this one's own.
  const frameName = `retryline-handler-${++instances}`
  const decoder = createDecoder({ decode: settings.decode, schema: settings.schema })
  const alone = Alone.of(driver.process)
  const outages = new Outages(clock, emitter, settings.outage)
  const limit = settings.deadLetterLimit && new DeadLetterLimit(clock, emitter, settings.deadLetterLimit)
  const pauses = createPauses(emitter, settings.topics, () => lifecycle.groups().forEach((group) => group.pumpAll()))

  function makeGroups(topology: Topology): Group[] {
    const main = { groupId: topology.groupId, topics: topology.topics, tier: undefined }
    const tiers = topology.tiers.map((tier) => ({ groupId: tier.groupId, topics: [...tier.topics.values()], tier }))
    return [main, ...tiers].map(
      (one) =>
        new Group({
          ...one,
          partitions: startup.known(one.topics),
          settings,
          topology,
          driver,
          admin,
          clock,
          emitter,
          random,
          alone,
          makeTransactions,
          isHalted: () => limit?.halted === true,
          isPaused: pauses.isPaused,
          progress: () => lifecycle.progress(),
          makeProcessor: (callbacks) =>
            createProcessor({
              settings,
              topology,
              classifier,
              decoder,
              outbox,
              outages,
              limit,
              clock,
              random,
              emitter,
              frameName,
              countPartitions: (topic) => startup.count(topic),
              ...callbacks,
            }),
        }),
    )
  }

  const lifecycle = createLifecycle({
    clock,
    emitter,
    logger,
    shutdownTimeoutMs: settings.shutdownTimeoutMs,
    sessionTimeoutMs: settings.sessionTimeoutMs,
    rebalanceTimeoutMs: settings.rebalanceTimeoutMs,
    frameName,
    async prepare(): Promise<Running> {
      const { topology, release } = await startup.prepare()
      return { groups: makeGroups(topology), release }
    },
    closeOutbox() {
      outages.close()
      outbox.close()
      for (const group of lifecycle.groups()) group.closeTransactions()
    },
    disconnect: async () => {
      await Promise.allSettled([publisher.disconnect(), admin.disconnect()])
    },
  })

  function health(): Health {
    const mainOf = startup.topology()
    const groups = lifecycle
      .groups()
      .map((group) =>
        groupHealth(group, clock, (lane) => pauses.isPaused(mainOf.origin(lane.topic)?.main ?? lane.topic)),
      )
    const problems = problemsOf(groups)
    for (const [topic, error] of outbox.failing) problems.push(`copies to ${topic} cannot be published: ${error}`)
    if (limit?.halted) problems.push('too many dead letters (deadLetterLimit): nothing is handled until resume()')
    const down = outages.list()
    const state = lifecycle.state()
    const status = state !== 'running' ? state : problems.length > 0 ? 'degraded' : pauses.any() ? 'paused' : 'ok'
    const held = status === 'ok' && down.length > 0
    return { status: held ? 'held' : status, problems, groups, outages: down }
  }

  return {
    start: () => lifecycle.start(),
    stop: (stopOptions) => lifecycle.stop(stopOptions),
    pause: (target) => pauses.pause(target),
    resume(target) {
      if (target?.topic === undefined) limit?.reset()
      pauses.resume(target)
    },
    health,
    on: (type: never, listener: never) => emitter.on(type, listener),
    topics: () =>
      startup
        .topology()
        .allTopics()
        .map(({ topic, role }) => ({ topic, role })),
    async [Symbol.asyncDispose]() {
      await lifecycle.stop()
    },
  }
}
