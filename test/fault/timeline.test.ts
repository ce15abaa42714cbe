/** What becomes of a plan whose faults do not all come about. */
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { NothingToDo, NotSeen, type Fault, type World } from './faults/fault'
import { forAWhile, seen } from './faults/proof'
import { followLedger, type Line } from './ledger'
import type { Group } from './plan'
import { carryOut, type CarriedOut, type Window } from './timeline'

const world = { log: () => undefined } as unknown as World

describe('a plan that is carried out', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function fault(name: string, begin: Fault['begin']): Fault {
    return { name, about: '', resource: 'workers', lastsMs: [0, 0], excuses: { copies: false, stall: false }, begin }
  }
  async function carriedOut(faults: readonly Fault[]): Promise<CarriedOut & { windows: Window[] }> {
    const windows: Window[] = []
    const groups = faults.map((one): Group => ({ steps: [{ at: 0, fault: one, lastsMs: 10, seed: 7 }], breathMs: 100 }))
    const all = carryOut(world, groups, windows, 60_000)
    await vi.runAllTimersAsync()
    return { ...(await all), windows }
  }
  const undone = (): Promise<() => Promise<void>> => Promise.resolve(() => Promise.resolve())
  const unseen = (): Promise<() => Promise<void>> => Promise.resolve(() => Promise.reject(new NotSeen('not seen')))

  it('counts what was brought about, and goes on after what was not', async () => {
    let tries = 0
    const idle = fault('idle', () => Promise.reject(new NothingToDo('no worker is up')))
    const late = fault('late', () => (++tries < 2 ? unseen() : undone()))
    const { faults, notBroughtAbout, problems, windows } = await carriedOut([late, idle, late, fault('good', undone)])
    expect(faults).toEqual({ late: 1, good: 1 })
    expect(problems).toEqual(['idle never came about'])
    expect(notBroughtAbout).toEqual({ late: 1, idle: 3 })
    // What was done excuses what it excuses, whether it was seen or not.
    expect(windows.map((one) => one.fault)).toEqual(['late', 'late', 'good'])
    for (const { to } of windows) expect(to).toBeLessThan(Infinity)
  })

  it('tries a kind again that never came about, with another chance, and is content when it comes', async () => {
    const seeds: number[] = []
    const shy = fault('shy', (_, chance) => {
      seeds.push(chance.next())
      return seeds.length < 3 ? unseen() : undone()
    })
    const { faults, notBroughtAbout, problems } = await carriedOut([shy])
    expect({ faults, notBroughtAbout, problems }).toEqual({
      faults: { shy: 1 },
      notBroughtAbout: { shy: 2 },
      problems: [],
    })
    expect(new Set(seeds).size).toBe(3)
  })

  it('tells of a fault that cannot be undone, and goes on', async () => {
    const bad = fault('bad', () => Promise.resolve(() => Promise.reject(new Error('the node does not start'))))
    const { faults, problems } = await carriedOut([bad, fault('good', undone)])
    expect(faults).toEqual({ good: 1 })
    expect(problems).toContain('a fault failed: bad: Error: the node does not start')
    expect(problems).toContain('bad never came about')
  })

  it('undoes all steps after the proof, and those that were taken where one fails', async () => {
    const told: string[] = []
    const undo = (name: string) => () => {
      told.push(name)
      return Promise.resolve()
    }
    const undoAll = await forAWhile(
      async (undos) => void undos.push(undo('first'), undo('second')),
      () => Promise.reject(new NotSeen('nothing was seen')),
    )
    await expect(undoAll()).rejects.toThrow('nothing was seen')
    expect(told).toEqual(['first', 'second'])
    const half = forAWhile(
      async (undos) => {
        undos.push(undo('half'))
        throw new Error('the node is away')
      },
      () => Promise.resolve(),
    )
    await expect(half).rejects.toThrow('the node is away')
    expect(told).toEqual(['first', 'second', 'half'])
  })

  it.each([
    ['where it does not come', () => false, /not within/],
    ['at once where nobody is there any more', () => true, /nobody is there any more/],
  ])('says that a proof was not seen, %s', async (_, gone, message) => {
    const blind = { ...world, lines: () => [] }
    const looking = expect(seen(blind, 'it', 0, () => true, gone)).rejects.toThrow(message)
    await vi.runAllTimersAsync()
    await looking
  })
})

it('a ledger that is followed has every whole line once, however it grows', () => {
  const folder = mkdtempSync(join(tmpdir(), 'retryline-ledger-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'w1.jsonl')
  const follow = followLedger(path)
  const texts = (): string[] => follow().map((line: Line) => (line.what === 'note' ? line.text : line.what))
  expect(texts()).toEqual([])
  const lines = Buffer.from(['a', 'ä☃', 'c'].map((text) => `${JSON.stringify({ what: 'note', text })}\n`).join(''))
  for (let at = 0; at < lines.length; at++) {
    appendFileSync(path, lines.subarray(at, at + 1))
    expect(texts()).toEqual(
      ['a', 'ä☃', 'c'].slice(
        0,
        lines
          .subarray(0, at + 1)
          .toString()
          .split('\n').length - 1,
      ),
    )
  }
  expect(texts()).toEqual(['a', 'ä☃', 'c'])
})
