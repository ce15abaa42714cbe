import { expect } from 'vitest'
import { isOwnHeader, OWN_HEADER_BUDGET } from '../../src/envelope'
import type { Member, Scene } from './scene'
import type { StoredRecord } from './wire'

export function throwIt(thrown: unknown): never {
  throw thrown
}

export function expectUnharmed(scene: Scene, member: Member): void {
  expect(member.hooks.counts.crashed).toBe(0)
  expect(member.hooks.events('problem')).toEqual([])
  expect(scene.values().length === 0 || scene.calls.some(({ endedAt }) => endedAt !== undefined)).toBe(true)
}

/** These, each once, and with headers that keep their bounds. */
export async function expectDead(scene: Scene, values: readonly string[]): Promise<void> {
  const dead = await scene.dead()
  expect(dead.map(({ value }) => String(value)).sort()).toEqual([...values].sort())
  for (const one of dead) expect(ownBytes(one), String(one.value)).toBeLessThanOrEqual(OWN_HEADER_BUDGET)
}

export function ownBytes({ headers }: Pick<StoredRecord, 'headers'>): number {
  return headers
    .filter(([name]) => isOwnHeader(name))
    .reduce((sum, [name, value]) => sum + name.length + (value?.length ?? 0) + 4, 0)
}
