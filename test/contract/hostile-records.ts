import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NonRetryableError, RetryableError, type BatchContext, type BatchMessage, type MessageBatch } from '../../src'
import { HEADER, isOwnHeader, readEnvelope, OWN_HEADER_BUDGET } from '../../src/envelope'
import { CLOCK_SKEW_MS } from '../../src/route'
import { hostileRecord, ID, type HostileRecord } from './hostile-bytes'
import { ownBytes } from './hostile-checks'
import { untouchable } from './hostile-things'
import type { Given } from './promises'
import { headersNamed, type Scene } from './scene'
import type { Bytes, StoredRecord } from './wire'

const SCHEDULE = ['200ms', '400ms']
const ATTEMPTS = SCHEDULE.length + 1
const [FIRST_TIER] = SCHEDULE as [string]

const MODES: readonly Record<string, unknown>[] = [
  { ordering: 'partition' },
  { ordering: 'key' },
  { ordering: 'unordered' },
  { ordering: 'unordered', together: true },
  { ordering: 'key', delivery: 'exactly-once' },
]

/** What became of one record: its handler calls, and the copies of it that stand on the dead letter topic. */
interface Fate {
  readonly attempts: number[]
  ended: boolean
  dead: StoredRecord[]
}

/**
 * P1 to P4 under any bytes: each record is handled, or another group's, or a dead letter with its bytes untouched; never
 * two of these, never more attempts than the schedule has, never before its time nor later than its tier allows.
 */
export function hostileRecordPromises(given: Given, runs: { numRuns: number; records: number }): void {
  describe('P1, P2, P3, P4: hostile records', () => {
    it(
      'any bytes, on the main topic, as a replay and on a retry topic',
      { timeout: 60_000 + runs.numRuns * 5_000 },
      async () => {
        const { numRuns, records: maxLength } = runs
        const run = fc.tuple(
          fc.array(hostileRecord, { minLength: Math.ceil(maxLength / 2), maxLength }),
          fc.constantFrom(...MODES),
        )
        const property = fc.asyncProperty(run, async ([records, { together, ...options }]) => {
          const scene = await given.scene({ schedule: SCHEDULE })
          await tell(scene, records, options, together === true)
          await scene.close()
        })
        // As it was found: a run that is stuck takes long, and would be made smaller for hours.
        await fc.assert(property, { numRuns, endOnFailure: true })
      },
    )
  })
}

async function tell(
  scene: Scene,
  records: readonly HostileRecord[],
  options: Record<string, unknown>,
  together: boolean,
): Promise<void> {
  const { stage } = scene
  const fates = records.map((): Fate => ({ attempts: [], ended: false, dead: [] }))
  const soon = String(stage.now() + (stage.kind === 'fake' ? 30_000 : 1_000))
  const fill = (bytes: Bytes): Bytes =>
    typeof bytes === 'string'
      ? bytes.replace('{topic}', scene.topic).replace('{group}', scene.group).replace('{soon}', soon)
      : bytes
  const filled = records.map(({ headers, ...record }, id) => {
    const own = headers.map(([name, value]): readonly [string, Bytes] => [name, fill(value)])
    own.splice(id % (own.length + 1), 0, [ID, String(id)])
    return { ...record, headers: own }
  })

  const handle = (message: { headers: Record<string, unknown> }, attempt: number, dueAt: number | undefined): void => {
    const fate = fates[Number(String(message.headers[ID]))]!
    fate.attempts.push(attempt)
    if (dueAt !== undefined) expect(stage.now(), 'a start before its time').toBeGreaterThanOrEqual(dueAt)
    const { act } = filled[Number(String(message.headers[ID]))]!
    if (act === 'retry' || (act === 'once' && attempt === 1)) throw new RetryableError('closed')
    if (act === 'fatal') throw new NonRetryableError('no')
    if (act === 'odd') throw untouchable() as Error
    expect(fate.ended, 'handled to success twice').toBe(false)
    fate.ended = true
  }
  const batchHandler = ({ messages }: MessageBatch, ctx: BatchContext): void => {
    messages.forEach((message: BatchMessage, i) => {
      try {
        handle(message, message.attempt, message.dueAt)
      } catch (error) {
        ctx.fail(i, error)
      }
    })
  }
  const member = await scene.join(({ payload, attempt, dueAt }) => handle(payload.message, attempt, dueAt), {
    ...options,
    ...(together && { handler: undefined, batchHandler }),
  })
  const startedAt = stage.now()
  const topics = { main: scene.topic, retry: scene.retry(FIRST_TIER) }
  for (const where of ['main', 'retry'] as const) {
    const these = filled.filter((record) => record.where === where)
    const asWritten = these.map(({ key, value, headers }) => ({ key, value, headers }))
    if (these.length > 0) await stage.produce(topics[where], 0, asWritten)
  }
  await scene.untilDone()
  if (stage.kind === 'fake') {
    // Virtual time takes no longer than the waits: no due time of a header puts a record off beyond its tier and the clocks' skew.
    expect(stage.now() - startedAt).toBeLessThan(CLOCK_SKEW_MS + 10_000)
  }

  expect(member.hooks.events('problem').filter(({ where }) => where !== 'classify')).toEqual([])
  expect(member.hooks.counts.crashed).toBe(0)
  scene.expectNeverEarly()
  scene.expectNoStepBack()

  for (const one of await scene.dead()) fates[Number(headersNamed(one, ID).at(-1))]!.dead.push(one)
  for (const topic of [scene.dlq, ...SCHEDULE.map((delay) => scene.retry(delay))]) {
    for (const copy of await stage.records(topic)) expectBytes(copy, filled, topic)
  }
  filled.forEach((record, id) => expectFate(record, fates[id]!, scene.group))
}

/** A copy of ours has the bytes of what it is a copy of, and no more of ours than is allowed. */
function expectBytes(copy: StoredRecord, records: readonly HostileRecord[], topic: string): void {
  const record = records[Number(headersNamed(copy, ID).at(-1))]!
  expect([hex(copy.key), hex(copy.value)], topic).toEqual([hex(record.key), hex(record.value)])
  const [ours, theirs] = [byName(copy.headers), byName(record.headers)]
  // What a stranger put on the retry topic stands there as it came; null is written as empty, and named, by us.
  const isOurs = topic.endsWith('.dlq') || headersNamed(copy, HEADER.lastFailedAt).length === 1
  if (isOurs) for (const values of theirs.values()) values.forEach((one, i) => (values[i] = one ?? ''))
  for (const values of ours.values()) if (isOurs) values.forEach((one, i) => (values[i] = one ?? ''))
  expect(ours, topic).toEqual(theirs)
  if (!topic.endsWith('.dlq')) return
  expect(ownBytes(copy)).toBeLessThanOrEqual(OWN_HEADER_BUDGET)
  expect(readEnvelope(copy.headers).problems).toEqual([])
}

function expectFate(record: HostileRecord, { attempts, ended, dead }: Fate, group: string): void {
  const told = JSON.stringify({ ...record, attempts, ended, dead: dead.length })
  expect(attempts.length, told).toBeLessThanOrEqual(ATTEMPTS)
  expect(attempts, told).toEqual([...new Set(attempts)].sort())
  for (const attempt of attempts) expect(attempt >= 1 && attempt <= ATTEMPTS, told).toBe(true)
  const ways = [ended, dead.length === 1].filter(Boolean).length
  expect(dead.length, told).toBeLessThanOrEqual(1)
  if (isForOthers(record, group)) expect([ways, attempts.length], told).toEqual([0, 0])
  else expect(ways, told).toBe(1)
  if (record.where === 'main' && attempts.length > 0) expect(attempts[0], told).toBe(1)
  if (record.act === 'ok' && attempts.length > 0) expect(ended, told).toBe(true)
}

/** As the docs have it: on a main topic only a replay names a group, on a retry topic every copy does. */
function isForOthers({ where, headers }: HostileRecord, group: string): boolean {
  const last = (name: string): string | undefined => {
    const values = headers.filter((one) => one[0] === name)
    const value = values.at(-1)?.[1]
    if (value === undefined || value === null) return undefined
    const bytes = Buffer.from(value as Buffer)
    const text = bytes.toString('utf8')
    const isName = bytes.length > 0 && bytes.length <= 255 && Buffer.from(text).equals(bytes)
    return isName || name === HEADER.replayed ? text : undefined
  }
  const replayed = last(HEADER.replayed) === 'true'
  const named = where === 'main' ? undefined : last(HEADER.group)
  const found = named ?? (replayed ? last(HEADER.replayForGroup) : undefined)
  return found !== undefined && found !== group
}

const hex = (bytes: Bytes | undefined): string | null =>
  bytes === null || bytes === undefined ? null : Buffer.from(bytes as Buffer).toString('hex')

function byName(headers: readonly (readonly [string, Bytes])[]): Map<string, (string | null)[]> {
  const foreign = headers.filter(([name]) => !isOwnHeader(name))
  const map = new Map<string, (string | null)[]>()
  for (const [name, value] of foreign) map.set(name, [...(map.get(name) ?? []), hex(value)])
  return map
}
