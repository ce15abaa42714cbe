/**
 * One kafkajs consumer of one group, with what kafkajs does around it made plain.
 *
 * States:  idle -> starting -> running <-> crashed -> stopped
 *   - `starting`, and `crashed`, end when run() has resolved AND a GROUP_JOIN came: before, a commit is not sent.
 *   - `crashed`: we connect and run again, with a growing delay. kafkajs's own restart is switched off: its timer is set
 *     after the last moment at which a disconnect could clear it. No payload of before may be used for a commit.
 *   - a request that times out while running counts as a crash, and another client takes over: see replaceClient. So does a
 *     member that the broker has forgotten and that does not join again: see forgotten.
 *   - a batch that cannot be decoded is no crash: its partition alone waits, see read-around and unreadable.
 *   - `stopped`: no restart. A disconnect waits for the run() that is under way, however long that takes: before the join
 *     has ended kafkajs takes a disconnect for done, lets go of its runner, and joins afterwards, out of everybody's reach.
 *
 * Must never happen: an exception from a listener or from eachBatch reaches kafkajs (it would crash the consumer for
 * good, or spend the error budget of its whole life); a commit sent twice by kafkajs's retrier under another
 * generation once the payload's one-try commit is there; a live consumer after stop() that nobody holds.
 */
import { RetrylineError, isRetrylineError } from '../../errors'
import type {
  CommitEntry,
  DriverTools,
  GroupConsumer,
  GroupConsumerOptions,
  GroupListener,
  Timer,
  TopicPartition,
} from '../../ports'
import { createAssigners, tagsOf, type LookUp } from './assigner'
import { coordinatorDenied, createDenials, type Asked, type Denials } from './denied'
import { asCrash, asUnreadable, errorType } from './errors'
import type { ClusterLike, ConsumerLike, EachBatchPayload, KafkaJsLike, OffsetsByTopic } from './kafkajs-like'
import { readingAround, type Found } from './read-around'
import { createUnreadable } from './unreadable'
import { readStable, type CoordinatorsLike } from './stable-offsets'

/** kafkajs's own retries of a fetch, a join or a metadata look-up; short enough that a broker's return is seen soon. */
const RETRY = { initialRetryTime: 300, maxRetryTime: 5_000, retries: 8 }
/** So many heartbeats a member that the broker does not know any more may take to find out and to join again. */
const MISSED_BEATS = 3
const NO_ANSWER = 'the broker has not answered a request; a new connection is made'
const FORGOTTEN = 'the group has dropped this member, which has not joined again; a new connection is made'
/**
 * First and longest delay of a restart of ours. The count begins anew only where the consumer has lived as long as the
 * longest: what crashes it at its first fetch (a batch that cannot be read) does so after every join, and each join and
 * crash is a rebalance for all members of the group.
 */
const RESTART = { firstMs: 500, maxMs: 30_000 }

export function createKafkajsConsumer(
  kafka: KafkaJsLike,
  options: GroupConsumerOptions,
  listener: GroupListener,
  lookUp: LookUp,
  { clock }: DriverTools,
  denials: Denials = createDenials(kafka),
): GroupConsumer {
  let owned: ReadonlyMap<string, readonly number[]> = new Map()
  let state: 'idle' | 'starting' | 'running' | 'crashed' | 'stopped' = 'idle'
  /** stop() was called: nothing comes back from a crash any more. */
  let leaving = false
  let payloadCommit: EachBatchPayload['commitOffsetsIfNecessary'] | undefined
  let commitEvents = 0
  /** kafkajs has found the error of the crash that it is about to tell of a passing one. */
  let passing = false
  /** run() has resolved, and we have joined, both since the last start or restart. */
  let ran = false
  let member = false
  let restarts = 0
  let joinedAt: number | undefined
  let restartTimer: Timer | undefined
  let running: Promise<void> | undefined
  let stopping: Promise<void> | undefined
  /** Since when the broker refuses commits because it does not know this member, monotonic, ms. */
  let unknownSince: number | undefined
  /** A rebalance has begun, and we have not joined again. */
  let rejoining = false
  /** When the broker last took us for a member, monotonic, ms. */
  let beatAt = 0
  let rejoinTimer: Timer | undefined
  const joined = signal<void>()
  /** Of the present client. */
  let cluster: ClusterLike | undefined
  /** No node has told the coordinator of the group: before the next join one is asked why, once. */
  let coordinator: 'known' | 'not told' | 'asked why' = 'known'

  /** Clients that were given up, on their way out. */
  const retired = new Set<Promise<void>>()
  const unreadable = createUnreadable(
    clock,
    () => consumer,
    (where, offset, error, againInMs) =>
      contain('unreadable batch', () => listener.unreadable(where, offset, asUnreadable(error), againInMs)),
  )
  let consumer = makeClient()

  function makeClient(): ConsumerLike {
    const client: ConsumerLike = kafka.consumer(
      clientConfig((where, offset, error) => {
        // One that was given up may still fetch for a while.
        if (client === consumer && !leaving) contain('unreadable batch', () => unreadable.found(where, offset, error))
      }),
    )
    listenTo(client)
    return client
  }

  function clientConfig(found: Found): Parameters<KafkaJsLike['consumer']>[0] {
    return {
      groupId: options.groupId,
      partitionAssigners: readingAround(
        createAssigners(() => owned, lookUp, options.tag).map((make) => (config) => {
          cluster = config.cluster
          return make(config)
        }),
        found,
      ),
      sessionTimeout: options.sessionTimeoutMs,
      heartbeatInterval: options.heartbeatIntervalMs,
      rebalanceTimeout: options.rebalanceTimeoutMs,
      maxWaitTimeInMs: options.maxWaitMs,
      maxBytes: options.maxBytes,
      maxBytesPerPartition: options.maxBytesPerPartition,
      metadataMaxAge: options.metadataMaxAgeMs,
      allowAutoTopicCreation: false,
      retry: {
        ...RETRY,
        restartOnFailure: () => {
          passing = true
          return Promise.resolve(false)
        },
      },
    }
  }

  /** What this consumer asks the broker for, as far as it can be refused. */
  function asked(): Asked[] {
    return [
      { operation: 'Read', resourceType: 'topic', names: owned.size > 0 ? [...owned.keys()] : options.topics },
      { operation: 'Read', resourceType: 'group', names: [options.groupId] },
    ]
  }

  /** Runs a part of ours for kafkajs, which must never see it throw. */
  function contain(where: string, fn: () => void): void {
    try {
      fn()
    } catch (error) {
      tell(where, error)
    }
  }

  function tell(where: string, error: unknown): void {
    try {
      listener.problem(where, error)
    } catch {
      // Whoever cannot hear of a problem cannot be helped, and kafkajs must not pay for it.
    }
  }

  function listenTo(client: ConsumerLike): void {
    client.on('consumer.group_join', ({ payload }) => {
      contain('group join', () => {
        if (client !== consumer) return
        if (state === 'stopped') return
        if (state === 'crashed') contain('restarted', () => listener.restarted())
        member = true
        coordinator = 'known'
        beatAt = clock.monotonic()
        settled()
        upWhereReady()
        joined.resolve()
        owned = new Map(Object.entries(payload.memberAssignment))
        joinedAt ??= clock.monotonic()
        const partitions = [...owned].flatMap(([topic, all]) => all.map((partition) => ({ topic, partition })))
        unreadable.keep(partitions)
        listener.assigned({ memberId: payload.memberId, partitions })
      })
    })
    client.on('consumer.rebalancing', () => {
      if (client !== consumer) return
      settled()
      // A client on its way out is watched no more: nothing would cancel the timer.
      rejoining = !leaving
      contain('rebalancing', () => listener.rebalancing())
    })
    client.on('consumer.fetch_start', () => {
      if (client !== consumer || rejoinTimer !== undefined || leaving) return
      if (rejoining || isSilent()) contain('fetch start', watchRejoin)
    })
    client.on('consumer.heartbeat', () => {
      if (client !== consumer) return
      beatAt = clock.monotonic()
      if (!rejoining) settled()
    })
    client.on('consumer.commit_offsets', () => {
      if (client === consumer) commitEvents++
    })
    client.on('consumer.fetch', () => {
      if (client === consumer && member) contain('fetch', () => listener.fetched())
    })
    client.on('consumer.network.request_timeout', () => {
      if (client === consumer && state === 'running') contain('request timeout', () => replaceClient(NO_ANSWER))
    })
    client.on('consumer.end_batch_process', ({ payload }) => {
      if (payload.batchSize !== 0 || client !== consumer) return
      contain('empty batch', () => {
        const last = BigInt(payload.lastOffset)
        // Without a record of its own (all of it compacted away) the batch begins where it ends.
        const first = payload.firstOffset === null ? last : BigInt(payload.firstOffset)
        const where = { topic: payload.topic, partition: payload.partition }
        unreadable.read(where, last + 1n)
        listener.passed(where, first, last + 1n)
      })
    })
    client.on('consumer.crash', ({ payload: { error } }) => {
      contain('crash', () => {
        if (client !== consumer) return
        payloadCommit = undefined
        member = false
        settled()
        unreadable.forget()
        // Where nothing has ever worked, an error that lasts ends the start.
        if (nameOf(error) === 'KafkaJSGroupCoordinatorNotFound' && coordinator === 'known') coordinator = 'not told'
        const restarting = !leaving && (passing || state !== 'starting' || coordinator === 'not told')
        passing = false
        if (state === 'stopped') return
        if (state === 'running') state = 'crashed'
        const told = denials.explainNow(asCrash(error, [...owned.keys()]), asked())
        if (restarting) restartLater()
        else joined.reject(told)
        listener.crashed(told, restarting)
      })
    })
  }

  /**
   * A request that gets no answer in its time may never get one: where a connection is cut in the middle of a response,
   * kafkajs keeps the half of it, reads the next connection's bytes behind it, and understands nothing any more (seen on a
   * real broker: connections that stood, and no fetch answered). Such a client cannot even be stopped in good time, so
   * another takes its place while it ends.
   */
  function replaceClient(why: string): void {
    const old = consumer
    state = 'crashed'
    payloadCommit = undefined
    member = false
    settled()
    unreadable.forget()
    consumer = makeClient()
    const gone = quietDisconnect(old).finally(() => retired.delete(gone))
    retired.add(gone)
    restartLater()
    listener.crashed(new RetrylineError('RETRYLINE_CONNECT', why), true)
  }

  /**
   * A member whose session has run out joins again at its next heartbeat. Where that one join fails with its connection,
   * kafkajs forgets its member id, goes on fetching, and never heartbeats again: it would handle every record beside the
   * new owner, and commit nothing, for ever. A join under way is no reason to wait: on the coordinator's one connection a
   * commit is not answered before it.
   */
  function forgotten(error: unknown): void {
    if (errorType(error) !== 'UNKNOWN_MEMBER_ID') return
    const now = clock.monotonic()
    unknownSince ??= now
    if (state === 'running' && now - unknownSince >= MISSED_BEATS * options.heartbeatIntervalMs)
      replaceClient(FORGOTTEN)
  }

  /**
   * The same where the join that fails is that of a rebalance: nothing starts until it is over, so nothing is committed
   * that could be refused. kafkajs fetches again, though it has not joined; one that still has a member id finds out at
   * its next heartbeat, and then joins or tells of a rebalance anew. And where there is nothing to commit, as for a member
   * without a partition, or the coordinator is one that is gone: no heartbeat for a whole session, though kafkajs fetches.
   */
  function watchRejoin(): void {
    rejoinTimer = clock.after(MISSED_BEATS * options.heartbeatIntervalMs, () => {
      rejoinTimer = undefined
      if (state === 'running') replaceClient(FORGOTTEN)
    })
  }

  function isSilent(): boolean {
    return state === 'running' && clock.monotonic() - beatAt > options.sessionTimeoutMs
  }

  /** Whatever was wrong with our membership, it is over. */
  function settled(): void {
    unknownSince = undefined
    rejoining = false
    rejoinTimer?.cancel()
    rejoinTimer = undefined
  }

  function restartLater(): void {
    if (joinedAt !== undefined && clock.monotonic() - joinedAt >= RESTART.maxMs) restarts = 0
    joinedAt = undefined
    const delay = Math.min(RESTART.firstMs * 2 ** restarts++, RESTART.maxMs)
    restartTimer?.cancel()
    restartTimer = clock.after(delay, () => {
      restartTimer = undefined
      running = run().catch((error: unknown) => {
        if (leaving) return
        if (isRetrylineError(error, 'RETRYLINE_FORBIDDEN')) {
          // Where nothing has ever worked, it ends the start; else it may be allowed again one day.
          if (state === 'starting') return joined.reject(error)
          coordinator = 'known'
          contain('restart', () => listener.crashed(error, true))
        } else tell('restart', error)
        restartLater()
      })
    })
  }

  async function run(): Promise<void> {
    const client = consumer
    ran = member = false
    await client.connect()
    if (cluster !== undefined) await denials.see(cluster)
    if (!leaving) await subscribe(client)
    if (!leaving && coordinator === 'not told') await askWhy()
    // Before the join nothing is lost by going no further, and the stop need not wait for it.
    if (leaving) throw stoppedEarly()
    await client.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: options.concurrency,
      eachBatch: (payload) => (client === consumer ? eachBatch(payload) : Promise.resolve()),
    })
    // It resolves too when the join has failed: then a crash was told before.
    if (client !== consumer) return
    ran = true
    upWhereReady()
  }

  async function subscribe(client: ConsumerLike): Promise<void> {
    try {
      await client.subscribe({ topics: [...options.topics], fromBeginning: true })
    } catch (error) {
      throw denials.explainNow(error, asked())
    }
  }

  async function askWhy(): Promise<void> {
    coordinator = 'asked why'
    const denied = cluster && (await coordinatorDenied(cluster, options.groupId))
    if (denied !== undefined) throw denials.explainNow(denied, asked())
  }

  function upWhereReady(): void {
    if (ran && member && !leaving) state = 'running'
  }

  async function eachBatch(payload: EachBatchPayload): Promise<void> {
    const { batch } = payload
    payloadCommit = payload.commitOffsetsIfNecessary
    try {
      unreadable.read(batch, BigInt(batch.lastOffset()) + 1n)
      await listener.batch({
        topic: batch.topic,
        partition: batch.partition,
        // Present in kafkajs 2.x, though not in its types; the one thing that tells a stale batch from a good one.
        fetchedOffset: BigInt((batch as unknown as { fetchedOffset: string | number }).fetchedOffset),
        lastOffset: BigInt(batch.lastOffset()),
        messages: batch.messages,
        resolve: (next) => payload.resolveOffset((next - 1n).toString()),
      })
    } catch (error) {
      tell('batch', error)
    } finally {
      release(batch)
    }
  }

  async function quietDisconnect(client: ConsumerLike): Promise<void> {
    try {
      await client.disconnect()
    } catch (error) {
      tell('disconnect', error)
    }
  }

  async function finish(): Promise<void> {
    restartTimer?.cancel()
    settled()
    unreadable.forget()
    await running?.catch(() => undefined)
    state = 'stopped'
    await Promise.all([quietDisconnect(consumer), ...retired])
  }

  return {
    get running() {
      return state === 'running'
    },
    get commitsOnce() {
      return state === 'running' && payloadCommit !== undefined
    },
    async start() {
      if (leaving) throw stoppedEarly()
      state = 'starting'
      running = run()
      await running
      await joined.promise
    },
    stop() {
      leaving = true
      if (state === 'idle') state = 'stopped'
      return state === 'stopped' ? (stopping ?? Promise.resolve()) : (stopping ??= finish())
    },
    seek: unreadable.seek,
    pause: unreadable.pause,
    resume: unreadable.resume,
    async tags() {
      const found = await consumer.describeGroup().catch(() => undefined)
      // Otherwise the coordinator tells no member's metadata.
      return found?.state === 'Stable' ? tagsOf(found.members) : undefined
    },
    settledOffsets: (partitions) =>
      readStable(cluster as CoordinatorsLike | undefined, options.groupId, partitions, clock),
    async commit(entries) {
      const before = commitEvents
      try {
        // The call itself must stay synchronous: the offsets belong to the generation that is current now.
        if (payloadCommit) await payloadCommit(byTopic(entries))
        else await consumer.commitOffsets(entries.map(toCommit))
      } catch (error) {
        contain('a refused commit', () => forgotten(error))
        throw denials.explainNow(error, asked())
      }
      if (commitEvents === before) throw new RetrylineError('RETRYLINE_STATE', 'kafkajs did not send the commit')
    },
  }
}

/**
 * kafkajs's fetch loop, and the commit that it gave us, keep the batch until there is a next one, so with it all that was
 * read: of no use to anybody now, and it made the collector copy each record once more. Emptied and not only taken away: an
 * array that has become old keeps what is in it alive even when nobody has the array any more.
 */
function release(batch: EachBatchPayload['batch']): void {
  const arrays = batch as unknown as Record<string, unknown[] | undefined>
  for (const name of ['messagesWithinOffset', 'rawMessages']) {
    const array = arrays[name]
    if (array && array !== arrays['messages']) array.length = 0
  }
  // This one is the lane's.
  arrays['messages'] = []
}

function nameOf(error: unknown): unknown {
  return (error as { name?: unknown } | null | undefined)?.name
}

function stoppedEarly(): RetrylineError {
  return new RetrylineError('RETRYLINE_STATE', 'the consumer was stopped before it had joined its group')
}

function toCommit({ topic, partition, offset, metadata }: CommitEntry & TopicPartition): {
  topic: string
  partition: number
  offset: string
  metadata: string
} {
  return { topic, partition, offset: offset.toString(), metadata }
}

function byTopic(entries: readonly CommitEntry[]): OffsetsByTopic {
  const topics = new Map<string, OffsetsByTopic['topics'][number]['partitions']>()
  for (const { topic, partition, offset, metadata } of entries) {
    const partitions = topics.get(topic)
    const entry = { partition, offset: offset.toString(), metadata }
    if (partitions) partitions.push(entry)
    else topics.set(topic, [entry])
  }
  return { topics: [...topics].map(([topic, partitions]) => ({ topic, partitions })) }
}

function signal<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve!: (value: T) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Whoever waits sees the rejection; nobody waiting is no crash.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
