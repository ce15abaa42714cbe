import { describe, expect, it } from 'vitest'
import { parse } from '../../examples/demo/args'
import { play } from '../../examples/demo/demo'
import { audit, type Books } from '../../examples/demo/ledger'
import { webhooks } from '../../examples/demo/payloads'
import { createReport } from '../../examples/demo/report'
import { scenarios, scenarioOf } from '../../examples/demo/scenario'
import { fakeStage } from '../../examples/demo/stage'

describe('the demo', () => {
  it('takes all 329 webhooks through its scenarios, and its ledger balances', { timeout: 60_000 }, async () => {
    const lines: string[] = []
    const report = createReport({ write: (line) => void lines.push(line), colours: false })
    expect(await play(fakeStage(), report), lines.join('\n')).toBe(true)
    const text = lines.join('\n')
    expect(text).toContain('329 webhooks of GitHub: 58 kinds of event')
    expect(text).toContain('329 produced = 298 delivered + 31 dead')
    expect(text).toMatch(/20 {2}non-retryable .*\n *9 {2}exhausted .*\n *2 {2}timeout /)
    expect(text).toMatch(/first attempts.*\n +1m +retry\.1m.*\n +10m +retry\.10m.*\n +1h 11m +retry\.1h/)
    expect(lines.filter((line) => line.startsWith('  ok  '))).toHaveLength(6)
  })

  it('has input of every scenario', () => {
    const planned = scenarios({ maxAttempts: 4, retryAfterSeconds: 300 })
    const met = new Set(webhooks().map(({ id }) => scenarioOf(id, planned)))
    expect(met.size).toBe(planned.length)
    expect(planned.reduce((sum, { share }) => sum + share, 0)).toBe(100)
  })

  it('has webhooks that differ, and are the same in every run', () => {
    const ids = webhooks().map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(webhooks().map(({ id }) => id)).toEqual(ids)
  })
})

describe('the ledger of the demo', () => {
  const planned = scenarios({ maxAttempts: 4, retryAfterSeconds: 300 })
  const [first, second] = webhooks() as [ReturnType<typeof webhooks>[0], ReturnType<typeof webhooks>[0]]
  const fine = planned.find(({ ending }) => ending.kind === 'delivered')!
  const refused = planned.find(({ title }) => title === '400')!
  const own = { 'x-attempt': Buffer.from('1'), 'x-failure-reason': Buffer.from('non-retryable') }
  const letter = { id: second.id, key: second.key, value: second.value, headers: { ...second.headers, ...own } }
  const books: Books = {
    webhooks: [first, second],
    scenario: (id) => (id === first.id ? fine : refused),
    deliveries: [{ id: first.id, attempt: 1 }],
    accepted: new Map([[first.id, 1]]),
    deadLetters: [letter],
    positions: [{ group: 'g', topic: 't', partition: 0, committed: '2', end: '2' }],
    retries: { count: 0, early: 0, latestMs: 0 },
  }
  const faultsOf = (change: Partial<Books>): number[] =>
    audit({ ...books, ...change }).map(({ faults }) => faults.length)

  it('balances where all is well', () => {
    expect(faultsOf({})).toEqual([0, 0, 0, 0, 0, 0])
  })

  it.each<[string, Partial<Books>, number[]]>([
    ['a lost record', { deadLetters: [] }, [1, 1, 0, 0, 0, 1]],
    ['a record twice', { accepted: new Map([[first.id, 2]]) }, [0, 1, 0, 0, 0, 0]],
    ['a stranger', { accepted: new Map([[first.id, 1], ['?', 1]]) }, [0, 1, 0, 0, 0, 0]], // prettier-ignore
    ['a damaged value', { deadLetters: [{ ...letter, value: Buffer.from('{}') }] }, [0, 0, 1, 0, 0, 0]],
    ['a lost header', { deadLetters: [{ ...letter, headers: own }] }, [0, 0, 4, 0, 0, 0]],
    ['an early retry', { retries: { count: 1, early: 1, latestMs: 0 } }, [0, 0, 0, 1, 0, 0]],
    [
      'an offset behind',
      { positions: [{ group: 'g', topic: 't', partition: 0, committed: '1', end: '2' }] },
      [0, 0, 0, 0, 1, 0],
    ],
    ['another attempt', { deliveries: [{ id: first.id, attempt: 2 }] }, [0, 0, 0, 0, 0, 1]],
  ])('sees %s', (_what, change, faults) => {
    expect(faultsOf(change)).toEqual(faults)
  })
})

describe('the arguments of the demo', () => {
  it('are one broker, several, one of its own, or none', () => {
    expect(parse([])).toEqual({ help: false, broker: 'fake' })
    expect(parse(['--broker', 'local'])).toEqual({ help: false, broker: 'local' })
    expect(parse(['--broker=a.example:9092,[::1]:9093'])).toEqual({
      help: false,
      broker: ['a.example:9092', '[::1]:9093'],
    })
    expect(parse(['-h', '--broker', 'x'])).toEqual({ help: true })
  })

  it.each([
    ['--broker', 'x'],
    ['--broker', 'x:0'],
    ['--broker', 'x:70000'],
    ['--broker', 'x:1,'],
    ['--broker', ''],
    ['--foo'],
    ['x'],
  ])('refuse %s %s', (...argv) => {
    expect(() => parse(argv.filter((one) => one !== undefined))).toThrow(/--broker is|'--foo'|'x'/)
  })
})
