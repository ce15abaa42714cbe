/**
 * kafkajs uses a connection again after it was cut, and keeps what it had read of an answer: the next socket's bytes are read
 * behind that half. Then nothing is answered any more, or a number from the middle of an answer is taken for a length, and the
 * RangeError that follows is thrown from a socket's event, where nothing of ours could catch it: it ends the process.
 *
 * Here each socket's bytes are put together by themselves, and what cannot be read ends its connection, as a cut does.
 *
 * kafkajs also forgets a broker that fails without closing its other connections (`removeBroker`), and a connection that is
 * still being made when its client is disconnected: sockets and timers that keep a process alive after its stop (seen: ten of
 * each). Here a client that is disconnected ends every connection that it has ever made. And a producer that is disconnected
 * while it sends connects anew by itself for its next try (`sendMessages`), and nobody ever ends that: here it connects when it
 * is told to, and not else.
 *
 * And a consumer that is disconnected while it begins its fetches anew, since the cluster's nodes have changed, begins them though it
 * does not run any more: each comes back at once with nothing, without end and without a turn of the event loop. Nothing else
 * happens in the process then, no timer and no signal of a stop (seen on three nodes, in three processes at once). Here it finds no
 * node to fetch from.
 *
 * No public way leads to the connections of a producer or an admin client, so this one is of kafkajs 2's inside: the client
 * that we use inherits from the user's, which stays as it is, and hands out clusters whose connections are guarded. Where any
 * of it looks different the user's client is used, with kafkajs's faults (docs/kafkajs-faults.md).
 *
 * State of a connection:  the bytes of one socket are in it, those of others wait in `halves`
 *   - it is switched before each chunk, in the same turn in which kafkajs reads it.
 * Must never happen: a connection of a client that was told to disconnect, and not to connect since; bytes of two sockets in one
 * answer; an error thrown into a socket's event; a change to the user's client.
 */
import { decodeFetch, FETCH_VERSION } from './fetch-decoder'
import type { KafkaJsLike } from './kafkajs-like'
import { withoutIdleTimer, type RequestQueueLike } from './request-queue'

const CREATE_CLUSTER = 'private:Kafka:createCluster'
const MAKERS = ['consumer', 'producer', 'admin'] as const
/** Bytes of the length in front of each answer. */
const LENGTH = 4
const DISCONNECTED = 'the client was disconnected'

interface SocketLike {
  readonly destroyed?: boolean
  /** It was told to end, and does so in good order. */
  readonly writableEnded?: boolean
  on(event: 'data' | 'close', listener: () => void): unknown
  destroy(error?: Error): unknown
}

interface Framing {
  chunks: Buffer[]
  bytesBuffered: number
  bytesNeeded: number
}

export interface ConnectionLike extends Framing {
  readonly socket?: SocketLike | null
  readonly requestQueue?: RequestQueueLike
  socketFactory(where: never): SocketLike
  processData(bytes: Buffer): void
  send?(sending: Sending): Promise<unknown>
}

interface Sending {
  readonly request?: { readonly apiName?: unknown; readonly apiVersion?: unknown }
  readonly response?: { decode(answer: Buffer): Promise<unknown> }
}

type Cluster = {
  brokerPool?: { connectionPoolBuilder?: Builder }
  connect?: () => Promise<void>
  disconnect?: () => Promise<void>
  getNodeIds?: () => readonly unknown[]
}
/** Of one client. */
interface Guarded {
  /** As long as somebody else knows them. */
  readonly connections: Set<WeakRef<ConnectionLike>>
  /** All that are open: one that is connected twice at once forgets the first of its sockets. */
  readonly sockets: Set<SocketLike>
  /** It was disconnected, and not connected again: what still tries to reach a broker for it is to give up. */
  gone: boolean
  /** Its user has disconnected it: kafkajs's own tries connect it no more. */
  left: boolean
}
interface Client {
  connect(): Promise<void>
  disconnect(): Promise<void>
}
type Builder = { build?: (where?: never) => Promise<{ pool?: unknown }> }
type CreateCluster = (options: never) => Cluster

const clusters = new WeakMap<object, Cluster>()

/** The same client, with connections that survive a cut; itself where it is not kafkajs 2's. */
export function withGuardedConnections(kafka: KafkaJsLike): KafkaJsLike {
  if (!isPlain(kafka)) return kafka
  const key = Object.getOwnPropertySymbols(kafka).find(({ description }) => description === CREATE_CLUSTER)
  const create = key && (kafka as unknown as Record<symbol, unknown>)[key]
  if (key === undefined || typeof create !== 'function') return kafka
  const made: { readonly guarded: Guarded; readonly cluster: Cluster }[] = []
  const ours = Object.create(kafka, {
    [key]: {
      value: (options: never) => {
        const cluster = (create as CreateCluster)(options)
        const guarded = guardCluster(cluster)
        if (guarded) made.push({ guarded, cluster })
        return cluster
      },
    },
  }) as KafkaJsLike
  for (const name of MAKERS) {
    const make = kafka[name] as (config?: never) => Client
    const value = (config?: never): Client => {
      made.length = 0
      const client = make.call(ours, config)
      for (const { guarded, cluster } of made) {
        guardClient(client, guarded)
        clusters.set(client, cluster)
      }
      return client
    }
    Object.defineProperty(ours, name, { value, configurable: true, writable: true })
  }
  return ours
}

/** The makers that a client of kafkajs has in its own way, and for which its connections are not guarded. */
export function ownMakers(kafka: KafkaJsLike): string[] {
  const isKafkajs = Object.getOwnPropertySymbols(kafka).some(({ description }) => description === CREATE_CLUSTER)
  if (!isKafkajs) return []
  const root = rootOf(kafka)
  return MAKERS.filter((name) => kafka[name] !== root[name])
}

/** kafkajs's own cluster of a producer, a consumer or an admin client; undefined where its client is not guarded. */
export function clusterOf(client: object): unknown {
  return clusters.get(client)
}

function guardClient(client: Client, guarded: Guarded): void {
  const { connect, disconnect } = client
  client.connect = () => {
    guarded.left = false
    return connect.call(client)
  }
  client.disconnect = () => {
    guarded.left = true
    return disconnect.call(client)
  }
}

/** Methods of a class of the user's own may want to be called on just this object. */
function isPlain(kafka: KafkaJsLike): boolean {
  const root = rootOf(kafka)
  return MAKERS.every((name) => kafka[name] === root[name])
}

/** The prototype of kafkajs's class, whatever was derived from it. */
function rootOf(kafka: KafkaJsLike): Partial<KafkaJsLike> {
  let root: object = kafka
  for (let next: unknown; (next = Object.getPrototypeOf(root)) && next !== Object.prototype;) root = next
  return root
}

function guardCluster(cluster: Cluster): Guarded | undefined {
  const { connect, disconnect, getNodeIds } = cluster
  if (typeof connect !== 'function' || typeof disconnect !== 'function') return undefined
  const guarded: Guarded = { connections: new Set(), sockets: new Set(), gone: false, left: false }
  guardBuilder(cluster.brokerPool?.connectionPoolBuilder, guarded)
  if (typeof getNodeIds === 'function') {
    let asked = false
    cluster.getNodeIds = () => {
      if (!guarded.left) {
        asked = false
        return getNodeIds.call(cluster)
      }
      // A consumer that runs in spite of its disconnect, and so asks again, is told that there is none, which is an error.
      if (asked) return []
      // One that is not there: nothing is fetched, and the fetching ends without an error.
      asked = true
      return new Array<unknown>(1)
    }
  }
  cluster.connect = () => {
    if (guarded.left) return Promise.reject(refused())
    guarded.gone = false
    return connect.call(cluster)
  }
  cluster.disconnect = async () => {
    try {
      await disconnect.call(cluster)
    } finally {
      guarded.gone = true
      for (const one of guarded.connections) endConnection(one.deref())
      for (const one of guarded.sockets) endSocket(one)
    }
  }
  return guarded
}

function guardBuilder(builder: Builder | undefined, guarded: Guarded): void {
  const build = builder?.build
  if (!builder || typeof build !== 'function') return
  const { connections } = guarded
  builder.build = async (where) => {
    if (guarded.left) throw refused()
    const made = await build.call(builder, where)
    const pool = Array.isArray(made.pool) ? (made.pool as Partial<ConnectionLike>[]) : []
    for (const old of connections) if (old.deref() === undefined) connections.delete(old)
    for (const one of pool) {
      if (!isConnection(one)) continue
      guardConnection(one, guarded)
      connections.add(new WeakRef(one))
    }
    return made
  }
}

/** kafkajs tries what fails again for ten seconds and more, and its timers keep the process alive: not after this. */
function refused(): Error {
  return Object.assign(new Error(DISCONNECTED), { retriable: false })
}

/** One that kafkajs has ended itself ends in its own time. */
function endConnection(connection: ConnectionLike | undefined): void {
  const socket = connection?.socket
  if (!socket || hasEnded(socket)) return
  connection?.requestQueue?.destroy?.()
  endSocket(socket)
}

function endSocket(socket: SocketLike): void {
  // With an error, of which kafkajs hears: whoever waits for an answer on it is told that none comes.
  if (!hasEnded(socket)) socket.destroy(new Error(DISCONNECTED))
}

function hasEnded({ destroyed, writableEnded }: SocketLike): boolean {
  return destroyed === true || writableEnded === true
}

function isConnection(one: Partial<ConnectionLike>): one is ConnectionLike {
  return (
    typeof one.socketFactory === 'function' &&
    typeof one.processData === 'function' &&
    Array.isArray(one.chunks) &&
    one.bytesBuffered === 0 &&
    one.bytesNeeded === LENGTH
  )
}

/** The same request; where it is a fetch, with an answer that is decoded faster (see fetch-decoder.ts). */
function decodedFaster(sending: Sending): Sending {
  const { request, response } = sending
  if (request?.apiName !== 'Fetch' || request.apiVersion !== FETCH_VERSION || !response) return sending
  const decode = async (answer: Buffer): Promise<unknown> => decodeFetch(answer) ?? response.decode(answer)
  return { ...sending, response: { ...response, decode } }
}

export function guardConnection(connection: ConnectionLike, client?: Pick<Guarded, 'gone' | 'sockets'>): void {
  const open = connection.socketFactory
  const read = connection.processData
  const halves = new WeakMap<SocketLike, Framing>()
  let speaking: SocketLike | undefined

  connection.socketFactory = (where) => {
    const socket = open(where)
    if (client?.gone === true) socket.destroy(new Error(DISCONNECTED))
    client?.sockets.add(socket)
    socket.on('close', () => client?.sockets.delete(socket))
    // Before kafkajs's own listener, and so before it reads.
    socket.on('data', () => {
      if (speaking === socket) return
      const { chunks, bytesBuffered, bytesNeeded } = connection
      if (speaking) halves.set(speaking, { chunks, bytesBuffered, bytesNeeded })
      Object.assign(connection, halves.get(socket) ?? { chunks: [], bytesBuffered: 0, bytesNeeded: LENGTH })
      speaking = socket
    })
    return socket
  }
  withoutIdleTimer(connection.requestQueue)
  const { send } = connection
  if (typeof send === 'function') connection.send = (sending) => send.call(connection, decodedFaster(sending))
  connection.processData = (bytes) => {
    try {
      read.call(connection, bytes)
    } catch (error) {
      speaking?.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  }
}
