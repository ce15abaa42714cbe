/** What the demo prints. */
import { styleText } from 'node:util'
import type { Wave } from './journal'
import { PARTITIONS, type DeadLetter } from './kafka-side'
import { text, type Books, type Check } from './ledger'
import type { Webhook } from './payloads'
import type { Scenario } from './scenario'
import type { Stage } from './stage'
import { table } from './table'

export interface Report {
  opening(about: { stage: Stage; url: string }): void
  produced(webhooks: readonly Webhook[]): void
  wave(elapsedMs: number, wave: Wave): void
  outcome(planned: readonly Scenario[], books: Books): void
  deadLetters(topic: string, letters: readonly DeadLetter[]): void
  /** `virtualMs`: how far a virtual clock was moved. */
  ledger(checks: readonly Check[], virtualMs: number | undefined): void
  untidy(topics: readonly string[], error: unknown): void
}

const MOST_FAULTS = 5

export interface ReportOptions {
  readonly write?: (line: string) => void
  readonly colours?: boolean
}

export function createReport(options: ReportOptions = {}): Report {
  const write = options.write ?? ((line: string) => void process.stdout.write(`${line}\n`))
  const colours = options.colours ?? (process.stdout.isTTY && process.env.NO_COLOR === undefined)
  const style = (how: 'bold' | 'green' | 'red' | 'dim', line: string): string => (colours ? styleText(how, line) : line)
  const heading = (line: string): void => write(`\n${style('bold', line)}`)
  const began = performance.now()

  return {
    opening({ stage, url }) {
      const { title, topic, groupId, schedule } = stage
      write(style('bold', `retryline demo, on ${title}`))
      write('')
      write(`  topic     ${topic}, ${PARTITIONS} partitions; consumer group ${groupId}`)
      write(`  schedule  ${schedule.join(', ')}: after ${schedule.length + 1} attempts a record is dead`)
      write(`  handler   posts each record to ${url}, which fails in every way a server can`)
      heading('What happens')
    },

    produced(webhooks) {
      const kinds = new Set(webhooks.map(({ kind }) => kind)).size
      const bytes = webhooks.reduce((sum, { value }) => sum + value.length, 0)
      const size = `${(bytes / 1e6).toFixed(1)} MB`
      write(
        `${moment(0)}  ${'produced'.padEnd(14)}  ${webhooks.length} webhooks of GitHub: ${kinds} kinds of event, ${size}`,
      )
    },

    wave(elapsedMs, { tier, delivered, to, dead }) {
      const what = tier === 'main' ? 'first attempts' : `retry.${tier}`
      const parts = [`${delivered} delivered`, ...[...to].map(([delay, count]) => `${count} to retry.${delay}`)]
      if (dead > 0) parts.push(`${dead} dead`)
      write(`${moment(elapsedMs)}  ${what.padEnd(14)}  ${parts.join(', ')}`)
    },

    outcome(planned, books) {
      heading('What became of them')
      const attemptOf = new Map(books.deliveries.map(({ id, attempt }) => [id, attempt]))
      const reasonOf = new Map(books.deadLetters.map(({ id, headers }) => [id, text(headers['x-failure-reason'])]))
      const attempts = [1, 2, 3, 4]
      const row = (title: string, ids: readonly string[]): string[] => [
        title,
        `${ids.length}`,
        ...attempts.map((number) => count(ids.filter((id) => attemptOf.get(id) === number).length)),
        count(ids.filter((id) => reasonOf.has(id)).length),
      ]
      const all = books.webhooks.map(({ id }) => id)
      const rows = planned.map((scenario) => {
        const ids = all.filter((id) => books.scenario(id) === scenario)
        return row(scenario.title, ids)
      })
      const head = ['the server answers', 'records', 'at attempt 1', '2', '3', '4', 'dead']
      const total = row('all', all)
      for (const line of table([head, ...rows, total], 'lrrrrrr')) write(`  ${line}`)
    },

    deadLetters(topic, letters) {
      heading(`Why they are dead (headers of ${topic})`)
      const counts = new Map<string, number>()
      for (const { headers } of letters) {
        const key = JSON.stringify([text(headers['x-failure-reason']), lastBecause(headers)])
        counts.set(key, (counts.get(key) ?? 0) + 1)
      }
      const rows = [...counts].map(([key, count]) => [`${count}`, ...(JSON.parse(key) as string[])])
      for (const line of table(rows, 'rll')) write(`  ${line}`)
    },

    ledger(checks, virtualMs) {
      heading('The ledger')
      for (const { what, faults } of checks) {
        write(`  ${faults.length === 0 ? style('green', 'ok  ') : style('red', 'FAIL')}  ${what}`)
        for (const fault of faults.slice(0, MOST_FAULTS)) write(style('red', `        ${fault}`))
        if (faults.length > MOST_FAULTS) write(style('red', `        and ${faults.length - MOST_FAULTS} more`))
      }
      const balances = checks.every(({ faults }) => faults.length === 0)
      const real = `${((performance.now() - began) / 1000).toFixed(1)} s`
      const took = virtualMs === undefined ? real : `${duration(virtualMs)} of virtual time in ${real}`
      write('')
      write(style(balances ? 'green' : 'red', `It ${balances ? 'balances' : 'does not balance'}: ${took}`))
    },

    untidy(topics, error) {
      write(`Not deleted (${String(error)}): ${topics.join(', ')}`)
    },
  }
}

const count = (number: number): string => (number === 0 ? '·' : `${number}`)

const moment = (ms: number): string => `${duration(ms).padStart(10)}`

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  const parts = [
    [Math.floor(seconds / 3600), 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const
  return parts.flatMap(([number, unit]) => (number > 0 ? [`${number}${unit}`] : [])).join(' ') || '0s'
}

/** The classifier's reason of the last failure, from the record's history. */
function lastBecause(headers: Readonly<Record<string, unknown>>): string {
  const history = JSON.parse(text(headers['x-history'])) as { because: string }[]
  return history.at(-1)?.because ?? ''
}
