/**
 * A real broker on loopback ports, of one node or three, from a JVM. Tests, the demo and the benchmarks start theirs
 * here; see broker-shared.ts for the one that a test run shares.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asText, clusterProperties, nodeProperties, type NodePorts } from './broker-config'
import { guard } from './broker-guard'
import { resolveJars } from './broker-jars'
import { brokerNode, type BrokerNode } from './broker-node'
import { freePort } from './broker-ports'
import { clusterReady } from './broker-ready'
import { startProxy, type Proxy } from './proxy'

export interface BrokerOptions {
  /** Kafka's version; else KAFKA_VERSION; else the newest known to work. */
  version?: string
  nodes?: 1 | 3
  /** Broker properties that differ from those of broker-config.ts. */
  config?: Record<string, string | number>
  /** Puts a TCP proxy between each node and its clients. */
  proxied?: boolean
  /** What clients are told to connect to, node by node, where a proxy of one's own stands in front. */
  advertisedPort?: number | readonly number[]
  /** Flags of the JVM. The default starts fast; a benchmark wants another. */
  jvm?: readonly string[]
}

export interface Broker {
  /** What a client is given: one `host:port` for each node. */
  readonly brokers: string[]
  readonly version: string
  /** Where each node itself listens for clients. */
  readonly ports: number[]
  /** The process of a node, while it runs. Nodes count from 1. */
  pid(node: number): number | undefined
  proxy(node?: number): Proxy
  /** Ends everything and removes the data. */
  stop(): Promise<void>
  /** SIGKILL: the node says goodbye to nobody. */
  kill(node?: number): Promise<void>
  /** A controlled shutdown. */
  stopNode(node?: number): Promise<void>
  /** Starts a node again on its ports and data; resolves when it serves and is in sync with the nodes that run. */
  startNode(node?: number): Promise<void>
  logs(node?: number): string
}

export const FAST_START = ['-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto']

export async function startBroker(options: BrokerOptions = {}): Promise<Broker> {
  const count = options.nodes ?? 1
  const { version, classpath } = await resolveJars(options.version ?? process.env.KAFKA_VERSION)
  const folder = await mkdtemp(join(tmpdir(), 'retryline-broker-'))
  const watch = guard(folder)
  const ids = Array.from({ length: count }, (_, at) => at + 1)
  const proxies = new Map<number, Proxy>()
  const ports = new Map<number, NodePorts>()
  const nodes = new Map<number, BrokerNode>()
  const running = new Set<number>()

  const stop = async (): Promise<void> => {
    running.clear()
    // The data goes away with the broker, so nothing is gained by a goodbye.
    await Promise.all([...nodes.values()].map((node) => node.kill()))
    await Promise.all([...proxies.values()].map((proxy) => proxy.stop()))
    await watch.release()
  }

  const node = (id: number): BrokerNode => {
    const found = nodes.get(id)
    if (!found) throw new Error(`there is no node ${id}: nodes are ${ids.join(', ')}`)
    return found
  }

  const ready = (): Promise<void> => {
    const here = new Map([...ports].filter(([id]) => running.has(id)))
    return clusterReady(here, Promise.race([...running].map((id) => node(id).died)))
  }

  try {
    for (const id of ids) {
      const [client, internal, controller] = [await freePort(), await freePort(), await freePort()]
      const own = options.advertisedPort
      let advertised = (typeof own === 'number' ? own : own?.[id - 1]) ?? client
      if (options.proxied) {
        const proxy = await startProxy({ to: client })
        proxies.set(id, proxy)
        advertised = proxy.port
      }
      ports.set(id, { client, internal, controller, advertised })
    }
    const shared = { folder, classpath, guard: watch, jvm: options.jvm ?? FAST_START, clusterId: clusterId() }
    for (const id of ids) {
      const common = asText({ ...clusterProperties(count), ...options.config })
      const properties = nodeProperties(id, ports, join(folder, `data${id}`)) + common
      nodes.set(id, brokerNode({ ...shared, id, properties }))
    }
    await Promise.all([...nodes.values()].map((each) => each.format()))
    for (const [id, each] of nodes) {
      each.start()
      running.add(id)
    }
    await ready()
  } catch (error) {
    await stop()
    throw error
  }

  const leave = (id: number, how: 'stop' | 'kill'): Promise<void> => {
    running.delete(id)
    return node(id)[how]()
  }
  return {
    brokers: [...ports.values()].map(({ advertised }) => `127.0.0.1:${advertised}`),
    version,
    ports: [...ports.values()].map(({ client }) => client),
    pid: (id) => node(id).pid,
    proxy(id = 1) {
      const found = proxies.get(id)
      if (!found) throw new Error('start the broker with `proxied: true` to have a proxy')
      return found
    },
    stop,
    kill: (id = 1) => leave(id, 'kill'),
    stopNode: (id = 1) => leave(id, 'stop'),
    startNode(id = 1) {
      node(id).start()
      running.add(id)
      return ready()
    },
    logs: (id = 1) => node(id).logs(),
  }
}

/** Kafka's form of a UUID; one that begins with a dash would be read as an option. */
export function clusterId(): string {
  const id = randomBytes(16).toString('base64url')
  return id.startsWith('-') ? clusterId() : id
}
