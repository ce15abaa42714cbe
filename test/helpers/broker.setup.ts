import type { TestProject } from 'vitest/node'
import { findBroker, jvmMissing, type SharedBroker } from './broker-find'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Undefined where no real broker can be had: then the suites that need one are skipped, and a loud line says so. */
    broker: SharedBroker | undefined
    /** Whether a test can start brokers of its own, to kill and restart them. */
    ownBrokers: boolean
  }
}

const loud = (what: string, why: string): string => `\n!!! ${what} DID NOT RUN: ${why} !!!\n`

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const found = await findBroker()
  const noJvm = await jvmMissing()
  project.provide('broker', 'broker' in found ? found.broker : undefined)
  project.provide('ownBrokers', noJvm === undefined)
  const lines = [
    ...('why' in found ? [loud('THE REAL-BROKER SUITES', found.why)] : []),
    ...(noJvm ? [loud('THE SUITES THAT KILL AND RESTART BROKERS', noJvm)] : []),
  ]
  const stop = 'stop' in found ? found.stop : async () => undefined
  if (lines.length > 0 && process.env.REQUIRE_KAFKA === '1') {
    await stop()
    throw new Error(`${lines.join('')}REQUIRE_KAFKA=1 asks for them.`)
  }
  for (const line of lines) console.error(line)
  if ('broker' in found) {
    const { brokers, version, source } = found.broker
    console.log(`real broker: Kafka ${version} at ${brokers.join()} (${source})`)
  }
  return stop
}
