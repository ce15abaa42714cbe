/** One partition's transactions on a broker that is a few lines, with the host that joins them as `consume` does. */
import { createTransactions, type SendResult, type Transactions } from '../../../src/deliver'
import type { Outgoing } from '../../../src/record'
import { createTestClock } from '../../helpers/test-clock'
import { recorder } from '../consume/given'

export const TIMEOUT = 1_000
export const TOO_LARGE = Object.assign(new Error('too large'), { tooLarge: true })
const FENCED = Object.assign(new Error('another owner'), { fenced: true })

/** What becomes of one request: done or not, and with an answer or not. */
export type Fate = 'ok' | 'refused' | 'answer lost' | 'done, silent' | 'silent' | 'too large'
export type Step = 'takeOver' | 'begin' | 'publish' | 'offset' | 'commit'

interface Offset {
  readonly offset: bigint
  readonly metadata: string
}

export function record(value: string): Outgoing {
  return { topic: 'orders.retry.1m', partition: 0, key: null, value: Buffer.from(value), headers: [] }
}

export function setUp(fateOf: (step: Step, records: readonly string[]) => Fate | Promise<Fate> = () => 'ok') {
  const clock = createTestClock()
  const { emitter, of } = recorder(clock)
  /** What must never happen, and did. */
  const wrong: string[] = []
  const steps: Step[] = []

  // The broker
  let epoch = 0
  let open: { records: string[]; offset: Offset | undefined } | undefined
  let committed: Offset | undefined
  const log: string[] = []

  async function step<T>(name: Step, act: () => T, records: readonly string[] = []): Promise<T> {
    steps.push(name)
    const fate = await fateOf(name, records)
    if (fate === 'refused') throw new Error(`${name} was refused`)
    if (fate === 'too large') throw TOO_LARGE
    if (fate === 'silent') return new Promise(() => undefined)
    const result = act()
    if (fate === 'answer lost') throw new Error(`the answer to ${name} was lost`)
    return fate === 'done, silent' ? new Promise(() => undefined) : result
  }

  let mine = 0
  const owned = (by: number): NonNullable<typeof open> => {
    if (by !== epoch || open === undefined) throw FENCED
    return open
  }

  // The host
  const settled: number[] = []
  const aborted: string[] = []
  let may = true
  let transacting = false
  let sayable: (entries: readonly number[]) => boolean = () => true
  const commitOf = (entries: readonly number[]): Offset | undefined => {
    if (!sayable(entries)) return undefined
    const done = new Set([...settled, ...entries])
    let frontier = 0
    while (done.has(frontier)) frontier++
    const beyond = [...done].filter((entry) => entry > frontier).sort((a, b) => a - b)
    return { offset: BigInt(frontier), metadata: beyond.join() }
  }

  const transactions: Transactions<number> = createTransactions<number, Offset>({
    transactor: {
      async takeOver() {
        await step('takeOver', () => {
          mine = ++epoch
          open = undefined
        })
      },
      async begin() {
        const by = mine
        await step('begin', () => {
          if (by !== epoch) throw FENCED
          if (open !== undefined) wrong.push('two transactions at once')
          open = { records: [], offset: undefined }
        })
        return {
          publish: (records) => {
            const values = records.map(({ value }) => String(value))
            const store = () => {
              owned(by).records.push(...values)
              return [{ topic: 'orders.retry.1m', partition: 0, errorCode: 0 }]
            }
            return step('publish', store, values)
          },
          sendOffset: (_, { offset, metadata }) =>
            step('offset', () => void (owned(by).offset = { offset, metadata: metadata ?? '' })),
          commit: () =>
            step('commit', () => {
              const { records, offset } = owned(by)
              log.push(...records)
              committed = offset
              open = undefined
            }),
        }
      },
      reset: async () => undefined,
      disconnect: async () => undefined,
    },
    transactionalId: 'billing/orders/0',
    clock,
    random: () => 0.5,
    emitter,
    groupId: 'billing',
    topic: 'orders',
    partition: 0,
    tier: 'main',
    timeoutMs: TIMEOUT,
    isTooLarge: (error) => (error as { tooLarge?: boolean }).tooLarge === true,
    isFenced: (error) => (error as { fenced?: boolean }).fenced === true,
    countPartitions: () => Promise.resolve(6),
    gate: (work) => work(),
    taken: () => undefined,
    mayBegin: () => may,
    commitOf,
    began() {
      if (transacting) wrong.push('a transaction began under another')
      transacting = true
    },
    settled(entries) {
      transacting = false
      for (const entry of entries) {
        if (settled.includes(entry)) wrong.push(`${entry} was settled twice`)
        if (!log.includes(`r${entry}`)) wrong.push(`${entry} was settled before its transaction was committed`)
        settled.push(entry)
      }
    },
    aborted: ({ offset, metadata }) => void aborted.push(`${offset} ${metadata}`),
    failed: () => undefined,
    blocked: () => undefined,
    ended: () => void (transacting = false),
    lost: () => void verify(),
    closed: () => undefined,
  })

  async function verify(): Promise<void> {
    await transactions.takeOver()
    if (transactions.ready) transactions.verified(committed)
  }

  const results = new Map<number, SendResult>()
  let next = 0
  void verify()
  return {
    clock,
    of,
    transactions,
    wrong,
    steps,
    log,
    settled,
    results,
    aborted,
    count: (name: Step) => steps.filter((one) => one === name).length,
    /** Entries 0, 1, 2, … with a record `r0`, `r1`, `r2`, … each. */
    stage(value?: string) {
      const entry = next++
      void transactions.stage(entry, [record(value ?? `r${entry}`)]).then((result) => results.set(entry, result))
      return entry
    },
    /** Somebody else takes the id over, and aborts what is open. */
    steal() {
      epoch++
      open = undefined
    },
    /** What the group holds is set by somebody else. */
    commit: (offset: Offset) => void (committed = offset),
    allow(begin: boolean) {
      may = begin
      if (begin) transactions.poke()
    },
    say: (which: typeof sayable) => void (sayable = which),
  }
}
