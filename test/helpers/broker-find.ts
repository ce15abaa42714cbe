import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { startBroker } from './broker'
import { clusterProperties } from './broker-config'

const run = promisify(execFile)

/** The broker that a whole test run (or a demo, or a benchmark) shares. */
export interface SharedBroker {
  brokers: string[]
  version: string
  /** Given by KAFKA_BROKERS, or started here in a container or a JVM. */
  source: 'given' | 'docker' | 'jvm'
}

export type Found = { broker: SharedBroker; stop(): Promise<void> } | { why: string }

/** The first that can be had: the one given, one in Docker, one in a local JVM; else the reason why there is none. */
export async function findBroker(): Promise<Found> {
  const given = process.env.KAFKA_BROKERS
  if (given) {
    const brokers = given.split(',').map((address) => address.trim())
    return {
      broker: { brokers, version: process.env.KAFKA_VERSION ?? 'given', source: 'given' },
      stop: async () => undefined,
    }
  }
  const noDocker = await dockerMissing()
  if (noDocker === undefined) return inDocker()
  const noJvm = await jvmMissing()
  if (noJvm !== undefined) return { why: `KAFKA_BROKERS is not set; ${noDocker}; ${noJvm}` }
  try {
    const { brokers, version, stop } = await startBroker()
    return { broker: { brokers, version, source: 'jvm' }, stop }
  } catch (error) {
    return { why: `KAFKA_BROKERS is not set; ${noDocker}; the local broker did not start: ${String(error)}` }
  }
}

/** Why brokers that a test can kill and restart cannot be had here; undefined where they can. */
export async function jvmMissing(): Promise<string | undefined> {
  const missing: string[] = []
  for (const [command, flag] of [
    ['java', '-version'],
    ['mvn', '-version'],
  ] as const) {
    await run(command, [flag]).catch(() => missing.push(command))
  }
  return missing.length > 0 ? `no ${missing.join(' and no ')} on the PATH` : undefined
}

async function dockerMissing(): Promise<string | undefined> {
  const { getContainerRuntimeClient } = await import('testcontainers')
  return getContainerRuntimeClient().then(
    () => undefined,
    () => 'no Docker engine answers',
  )
}

/** Confluent's image counts its versions four above Kafka's own. */
const imageTag = (version: string): string => version.replace(/^\d+/, (major) => String(Number(major) + 4))

async function inDocker(): Promise<Found> {
  const version = process.env.KAFKA_VERSION ?? '4.1.1'
  const environment = Object.entries(clusterProperties(1)).map(([name, value]) => [
    `KAFKA_${name.toUpperCase().replaceAll('.', '_')}`,
    String(value),
  ])
  try {
    const { KafkaContainer } = await import('@testcontainers/kafka')
    const container = await new KafkaContainer(`confluentinc/cp-kafka:${imageTag(version)}`)
      .withKraft()
      .withEnvironment(Object.fromEntries(environment) as Record<string, string>)
      .start()
    const brokers = [`${container.getHost()}:${container.getMappedPort(9093)}`]
    return { broker: { brokers, version, source: 'docker' }, stop: async () => void (await container.stop()) }
  } catch (error) {
    return { why: `KAFKA_BROKERS is not set; Docker answers, but its broker did not start: ${String(error)}` }
  }
}
