/**
 * R74: header names that every object has.
 * Given records of another producer with headers named like what every JavaScript object inherits (`constructor`,
 * `toString`, `__proto__` and the rest), once and twice, null and empty too.
 * When their handler fails at each attempt, and reads and copies the headers as one does.
 * Then they reach the retry topic and the dead letter topic with the same bytes for each name, the handler sees them as its
 * own at every attempt, and nothing is left on Object.prototype.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import { isOwnHeader } from '../../src/envelope'
import type { Given } from '../contract/promises'
import type { Bytes, StoredRecord, WireRecord } from '../contract/stage'

const NAMES = [...Object.getOwnPropertyNames(Object.prototype), 'prototype', 'then', 'length']

const RECORDS: readonly WireRecord[] = [
  { value: 'once', headers: NAMES.map((name) => [name, `of ${name}`] as const) },
  { value: 'twice', headers: NAMES.flatMap((name) => [[name, '1'] as const, [name, '2'] as const]) },
  { value: 'empty', headers: NAMES.map((name) => [name, ''] as const) },
  { value: 'null', headers: NAMES.map((name) => [name, null] as const) },
]

/** By name, since between names no order is kept; null travels as empty. */
const byName = (headers: readonly (readonly [string, Bytes])[]): [string, string[]][] =>
  NAMES.map((name) => [name, headers.filter(([one]) => one === name).map(([, value]) => (value ?? '').toString())])

const foreign = ({ headers }: StoredRecord): [string, string[]][] =>
  byName(headers.filter(([name]) => !isOwnHeader(name)))

export function r74(given: Given): void {
  it('R74 P3: the original bytes on the dead letter topic, under every such name', async () => {
    const scene = await given.scene({ schedule: ['200ms'] })
    const untouched = Object.getOwnPropertyNames(Object.prototype)
    const seen = new Map<string, string[][]>()
    const { hooks } = await scene.join(({ value, payload }) => {
      const { headers } = payload.message
      seen.set(value!, [...(seen.get(value!) ?? []), NAMES.filter((name) => Object.hasOwn(headers, name))])
      Object.assign({}, headers)
      throw new RetryableError('not now')
    })
    await scene.produce(RECORDS)
    await scene.untilDone()
    for (const topic of [scene.retry('200ms'), scene.dlq]) {
      const copies = await given.stage().records(topic)
      expect(
        copies.map(({ value }) => String(value)),
        topic,
      ).toEqual(RECORDS.map(({ value }) => value))
      for (const [i, { value, headers }] of RECORDS.entries()) {
        expect(foreign(copies[i]!), `${String(value)} on ${topic}`).toEqual(byName(headers ?? []))
      }
    }
    for (const [value, attempts] of seen) expect(attempts, value).toEqual([NAMES, NAMES])
    expect(hooks.counts.crashed).toBe(0)
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(untouched)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })
}
