import type { TestProject } from 'vitest/node'
import { findBroker, jvmMissing, type Found, type SharedBroker } from './broker-find'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Undefined where no real broker can be had: then the suites that need one are skipped, and a loud line says so. */
    broker: SharedBroker | undefined
    /** Whether a test can start brokers of its own, to kill and restart them. */
    ownBrokers: boolean
  }
}

interface Shared {
  users: number
  found: Promise<{ found: Found; noJvm: string | undefined }>
}

// Each project loads this module anew, and all of them are to share one broker.
const SHARED = Symbol.for('retryline.test.broker')
const holder = globalThis as { [SHARED]?: Shared | undefined }

const loud = (what: string, why: string): string => `\n!!! ${what} DID NOT RUN: ${why} !!!\n`

async function find(): Promise<{ found: Found; noJvm: string | undefined }> {
  const [found, noJvm] = await Promise.all([findBroker(), jvmMissing()])
  if ('why' in found) console.error(loud('THE REAL-BROKER SUITES', found.why))
  if (noJvm) console.error(loud('THE SUITES THAT KILL AND RESTART BROKERS', noJvm))
  if ('broker' in found) {
    const { brokers, version, source } = found.broker
    console.log(`real broker: Kafka ${version} at ${brokers.join()} (${source})`)
  }
  return { found, noJvm }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const shared = (holder[SHARED] ??= { users: 0, found: find() })
  shared.users++
  const { found, noJvm } = await shared.found

  const teardown = async (): Promise<void> => {
    if (--shared.users > 0) return
    holder[SHARED] = undefined
    if ('stop' in found) await found.stop()
  }

  if (process.env.REQUIRE_KAFKA === '1' && ('why' in found || noJvm)) {
    await teardown()
    throw new Error(`REQUIRE_KAFKA=1 asks for the real-broker suites: ${'why' in found ? found.why : noJvm}`)
  }
  project.provide('broker', 'broker' in found ? found.broker : undefined)
  project.provide('ownBrokers', noJvm === undefined)
  return teardown
}
