import { connect } from 'node:net'
import { Kafka, logLevel } from 'kafkajs'
import type { NodePorts } from './broker-config'

const STEP = 100
const PATIENCE = 60_000

/**
 * Waits until every node of `nodes` answers a real client and is in sync wherever it holds a replica. It connects to the brokers
 * themselves, also where they advertise a proxy: whether that passes anything on is the test's own affair.
 */
export async function clusterReady(
  nodes: ReadonlyMap<number, NodePorts>,
  died: Promise<never>,
  patience = PATIENCE,
): Promise<void> {
  const direct = new Map([...nodes.values()].map(({ advertised, client }) => [advertised, client]))
  const kafka = new Kafka({
    clientId: 'broker-harness',
    brokers: [...nodes.values()].map(({ client }) => `127.0.0.1:${client}`),
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1000,
    requestTimeout: 3000,
    retry: { retries: 0 },
    socketFactory: ({ host, port, onConnect }) => connect({ host, port: direct.get(port) ?? port }, onConnect),
  })
  const until = Date.now() + patience
  let last: unknown
  while (Date.now() < until) {
    const admin = kafka.admin()
    try {
      await Promise.race([died, admin.connect()])
      const { brokers, controller } = await admin.describeCluster()
      const { topics } = await admin.fetchTopicMetadata()
      const absent = [...nodes.keys()].filter((id) => !brokers.some(({ nodeId }) => nodeId === id))
      const behind = topics.filter(({ partitions }) =>
        partitions.some(({ isr, replicas }) => replicas.some((id) => nodes.has(id) && !isr.includes(id))),
      )
      last = `absent: ${absent.join() || 'none'}, behind: ${behind.map(({ name }) => name).join() || 'none'}`
      if (absent.length === 0 && behind.length === 0 && controller !== null) {
        // The first look at a group makes the broker create its offsets topic: better here than in a test's first join.
        await admin.describeGroups(['broker-harness'])
        return
      }
    } catch (error) {
      last = error
    } finally {
      await admin.disconnect().catch(() => undefined)
    }
    await Promise.race([died, new Promise((resolve) => setTimeout(resolve, STEP))])
  }
  throw new Error(`the broker did not answer within ${patience} ms: ${String(last)}`)
}
