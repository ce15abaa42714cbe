/** For test files: the broker of this test run, found by broker.setup.ts. Kept apart so that broker.ts works outside vitest. */
import { randomBytes } from 'node:crypto'
import { describe, inject, it } from 'vitest'
import type { SharedBroker } from './broker-find'

export function sharedBroker(): SharedBroker | undefined {
  return inject('broker')
}

/** A suite on the shared broker; skipped, visibly, where there is none. */
export function describeWithBroker(name: string, suite: (broker: SharedBroker) => void): void {
  const broker = sharedBroker()
  if (broker) describe(name, () => suite(broker))
  else describe.skip(name, () => it('needs a real broker', () => undefined))
}

/** A suite that starts brokers of its own with `startBroker`; skipped, visibly, where it cannot. */
export function describeWithOwnBrokers(name: string, suite: () => void): void {
  if (inject('ownBrokers')) describe(name, suite)
  else describe.skip(name, () => it('needs Java and Maven', () => undefined))
}

/** A name for a topic or group that no other test on the shared broker uses. */
export const unique = (name: string): string => `${name}-${randomBytes(5).toString('hex')}`
