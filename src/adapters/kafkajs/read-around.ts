/**
 * kafkajs decodes the answer to a fetch as a whole: one batch in a codec that nobody has registered, or one that cannot be
 * decoded, costs the batches of every other partition in it, and crashes the consumer, without a word of where it stands.
 *
 * Every partition assigner is handed the consumer's own cluster; the fetches of its brokers are replaced here by ones that
 * read around such a batch. A fetch:
 *   - is answered and can be decoded: that is all.
 *   - cannot be decoded: its partitions are fetched one by one and thrown away (those that were in the way before come
 *     first), which tells the ones in the way; of these as much is taken as can be decoded in front of the batch, the
 *     others are fetched again without them.
 *   - fails in any other way, then too: the error goes on to kafkajs, which knows what to do.
 *
 * Must never happen: a partition called unreadable because of a connection that broke; an answer in which a record is left
 * out between two others; more memory than the fetch itself may use.
 */
import type { TopicPartition } from '../../ports'
import { withoutAborted } from './aborted'
import { isUndecodable } from './errors'
import type { AssignerLike, BrokerLike, ClusterLike, FetchAnswer, FetchRequest } from './kafkajs-like'

/** So many partitions are tried side by side. */
const AT_ONCE = 16
/** How much less of a partition is asked for each time. */
const SHARE = 4

/** The batch at `offset` cannot be decoded; it is fetched again as long as nobody pauses the partition. */
export type Found = (where: TopicPartition, offset: bigint, error: unknown) => void

type Fetch = (request: FetchRequest) => Promise<FetchAnswer>
type AssignerFactory = (config: { cluster: never }) => AssignerLike

interface Position extends TopicPartition {
  readonly fetchOffset: string
  readonly maxBytes: number
}

/** The same assigners; the first of them brings the cluster. */
export function readingAround(assigners: readonly AssignerFactory[], found: Found): AssignerFactory[] {
  return assigners.map((create, i) => (config) => {
    if (i === 0) guard(config.cluster, found)
    return create(config)
  })
}

function guard(cluster: ClusterLike, found: Found): void {
  // Of another client's shape: an unreadable batch crashes it, as it would without us.
  if (typeof cluster.findBroker !== 'function') return
  const find = cluster.findBroker.bind(cluster)
  const guarded = new WeakSet<BrokerLike>()
  /** Partitions that were in the way of a fetch before. */
  const suspects = new Set<string>()
  cluster.findBroker = async (node) => {
    const broker = await find(node)
    if (guarded.has(broker)) return broker
    guarded.add(broker)
    const plain = broker.fetch.bind(broker)
    const fetch: Fetch = async (request) => withoutAborted(await plain(request))
    broker.fetch = (request) => readAround(fetch, request, suspects, found)
    return broker
  }
}

async function readAround(
  fetch: Fetch,
  request: FetchRequest,
  suspects: Set<string>,
  found: Found,
): Promise<FetchAnswer> {
  let failure: unknown
  try {
    return await fetch(request)
  } catch (error) {
    if (!isUndecodable(error)) throw error
    failure = error
  }
  let rest = positionsOf(request)
  const fronts: FetchAnswer[] = []
  for (const known of [true, false]) {
    const inTheWay = await undecodable(
      fetch,
      request,
      rest.filter((one) => suspects.has(keyOf(one)) === known),
    )
    if (inTheWay.length === 0) continue
    for (const one of inTheWay) {
      suspects.add(keyOf(one))
      const front = await inFront(fetch, request, one, found)
      if (front) fronts.push(front)
    }
    rest = rest.filter((one) => !inTheWay.includes(one))
    if (rest.length === 0) return merged(fronts)
    try {
      // What can be handed over must not wait for more to come.
      const maxWaitTime = fronts.length > 0 ? 0 : request.maxWaitTime
      return merged([...fronts, await fetch({ ...of(request, rest), maxWaitTime })])
    } catch (error) {
      if (!isUndecodable(error)) throw error
      failure = error
    }
  }
  throw failure
}

/** Which of these cannot be decoded, as far as a fetch of them would read. */
async function undecodable(fetch: Fetch, request: FetchRequest, candidates: readonly Position[]): Promise<Position[]> {
  const bad: Position[] = []
  for (let i = 0; i < candidates.length;) {
    const size = Math.max(1, Math.min(AT_ONCE, Math.floor(request.maxBytes / (candidates[i]?.maxBytes ?? 1))))
    const tried = candidates.slice(i, i + size)
    const results = await Promise.all(
      tried.map(async (one) => {
        try {
          await fetch({ ...of(request, [one]), maxWaitTime: 0 })
          return false
        } catch (error) {
          if (isUndecodable(error)) return true
          throw error
        }
      }),
    )
    bad.push(...tried.filter((_, at) => results[at]))
    i += size
  }
  return bad
}

/** As much as can be decoded in front of the batch that cannot; undefined where that one is the next. */
async function inFront(
  fetch: Fetch,
  request: FetchRequest,
  one: Position,
  found: Found,
): Promise<FetchAnswer | undefined> {
  const upTo = (maxBytes: number): Promise<FetchAnswer> =>
    fetch({ ...of(request, [{ ...one, maxBytes }]), maxWaitTime: 0 })
  let first: FetchAnswer
  try {
    // A broker answers with one whole batch, however little is asked for.
    first = await upTo(1)
  } catch (error) {
    if (!isUndecodable(error)) throw error
    found({ topic: one.topic, partition: one.partition }, BigInt(one.fetchOffset), error)
    return undefined
  }
  for (let bytes = one.maxBytes / SHARE; bytes > 1; bytes /= SHARE) {
    try {
      return await upTo(Math.floor(bytes))
    } catch (error) {
      if (!isUndecodable(error)) throw error
    }
  }
  return first
}

function positionsOf({ topics }: FetchRequest): Position[] {
  return topics.flatMap(({ topic, partitions }) => partitions.map((one) => ({ topic, ...one })))
}

/** The request, of these partitions only. */
function of(request: FetchRequest, positions: readonly Position[]): FetchRequest {
  const topics = new Map<string, Omit<Position, 'topic'>[]>()
  for (const { topic, ...one } of positions) {
    const partitions = topics.get(topic)
    if (partitions) partitions.push(one)
    else topics.set(topic, [one])
  }
  return { ...request, topics: [...topics].map(([topic, partitions]) => ({ topic, partitions })) }
}

function merged(answers: readonly FetchAnswer[]): FetchAnswer {
  return { ...answers[0], responses: answers.flatMap(({ responses }) => responses) }
}

const keyOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`
