/** What a broker for tests is told, and what its clients may rely on. */

export interface NodePorts {
  /** Where clients connect. */
  client: number
  /** What clients are told to connect to: a proxy's port, or `client` itself. */
  advertised: number
  /** Brokers talk to each other here, so that a proxy that cuts clients off leaves the cluster whole. */
  internal: number
  controller: number
}

/** The same for one node and three, for a JVM and a container. */
export function clusterProperties(nodes: number): Record<string, string | number> {
  return {
    'auto.create.topics.enable': 'false',
    'default.replication.factor': nodes,
    'min.insync.replicas': Math.min(nodes, 2),
    'offsets.topic.replication.factor': nodes,
    'offsets.topic.num.partitions': 2,
    'transaction.state.log.replication.factor': nodes,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 2,
    'share.coordinator.state.topic.replication.factor': nodes,
    'share.coordinator.state.topic.min.isr': 1,
    'share.coordinator.state.topic.num.partitions': 1,
    // A test that starts a group should not wait for members that will never come.
    'group.initial.rebalance.delay.ms': 0,
    'group.min.session.timeout.ms': 1000,
    // Tests of retention and compaction wait for these.
    'log.retention.check.interval.ms': 1000,
    'log.segment.delete.delay.ms': 1000,
    'log.cleaner.backoff.ms': 500,
    'log.cleaner.dedupe.buffer.size': 2_097_152,
    // A killed node should be missed soon; a starved one should not be.
    'broker.heartbeat.interval.ms': 500,
    'broker.session.timeout.ms': 4000,
    'replica.lag.time.max.ms': 5000,
    'num.network.threads': 2,
    'num.io.threads': 4,
    'background.threads': 2,
  }
}

export function nodeProperties(node: number, all: ReadonlyMap<number, NodePorts>, data: string): string {
  const ports = all.get(node)
  if (!ports) throw new Error(`there is no node ${node}`)
  const at = (name: string, port: number): string => `${name}://127.0.0.1:${port}`
  const properties = {
    'process.roles': 'broker,controller',
    'node.id': node,
    'controller.quorum.voters': [...all].map(([id, { controller }]) => `${id}@127.0.0.1:${controller}`).join(','),
    'listener.security.protocol.map': 'CLIENTS:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'INTERNAL',
    listeners: [at('CLIENTS', ports.client), at('INTERNAL', ports.internal), at('CONTROLLER', ports.controller)].join(),
    'advertised.listeners': [at('CLIENTS', ports.advertised), at('INTERNAL', ports.internal)].join(),
    'log.dirs': data,
  }
  return asText(properties)
}

export const asText = (properties: Record<string, string | number>): string =>
  Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
