import { readFile, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { resolve } from 'node:path'
import kafkajs from 'kafkajs/package.json' with { type: 'json' }
import own from '../../package.json' with { type: 'json' }
import { isOurs, type Result } from './result'
import type { Suite } from './suite'

const README = resolve(import.meta.dirname, '../README.md')
const FIXED = new Set(
  'suite system unit median min max runs reconciled lost duplicated early problems ratios fetch'.split(' '),
)

const number = (value: unknown): string => {
  if (typeof value === 'number') return value.toLocaleString('en-US')
  // Not every system of a suite has every figure.
  return typeof value === 'string' ? value : ''
}

/** The same table for the terminal and for the README. */
export function table(suite: Suite, results: Result[]): string {
  const [ours] = results
  const figures = Object.keys(ours ?? {}).filter((name) => !FIXED.has(name))
  const head = [
    'system',
    `median ${suite.unit}`,
    'min',
    'max',
    ...figures,
    'runs',
    'lost / doubled / early',
    'ours / peer',
  ]
  const rows = results.map((result) => {
    const ratio = isOurs(result.system) ? undefined : ours?.ratios[result.system]
    const counts = `${result.lost} / ${result.duplicated} / ${result.early}`
    return [
      result.system,
      ...[result.median, result.min, result.max, ...figures.map((name) => result[name]), result.runs].map(number),
      result.problems.length > 0 ? `${counts}, ${result.problems.length} other faults` : counts,
      ratio === undefined ? '' : number(ratio),
    ]
  })
  const widths = head.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]?.length ?? 0)))
  const line = (cells: string[]): string => `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

/** Who fetched how: systems that did it alike in one line. */
function fetchLines(results: Result[]): string {
  const alike = new Map<string, string[]>()
  for (const { system, fetch } of results) if (fetch) alike.set(fetch, [...(alike.get(fetch) ?? []), system])
  const lines = [...alike].map(([fetch, systems]) => `- ${systems.join(', ')}: ${fetch}`)
  return lines.length === 0 ? '' : `Fetches:\n\n${lines.join('\n')}\n\n`
}

/** What is said of the figures by hand; a suite's first table is written in front of it. */
const NOTES = '<!-- notes -->'

/** Writes one suite's table between its markers; the rest of the page is left alone. */
export async function writeReadme(suite: Suite, results: Result[], broker: string): Promise<void> {
  const [cpu] = cpus()
  const machine = `${cpus().length} cores (${cpu?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB`
  const versions = `retryline ${own.version}, kafkajs ${kafkajs.version}, Kafka ${broker}, Node ${process.versions.node}`
  const date = new Date().toISOString().slice(0, 10)
  const fetched = fetchLines(results)
  const section = `## ${suite.name}\n\n${suite.method}\n\n${table(suite, results)}\n\n${fetched}${date}; ${versions}; ${machine}.`
  const [open, close] = [`<!-- ${suite.name} -->`, `<!-- /${suite.name} -->`]
  const page = await readFile(README, 'utf8')
  const [from, to] = [page.indexOf(open), page.indexOf(close)]
  const framed = `${open}\n${section}\n${close}`
  if (from >= 0 && to >= 0) {
    await writeFile(README, `${page.slice(0, from)}${framed}${page.slice(to + close.length)}`)
    return
  }
  const [front = '', ...notes] = page.split(NOTES)
  const rest = notes.length > 0 ? `\n${NOTES}${notes.join(NOTES)}` : ''
  await writeFile(README, `${front.trimEnd()}\n\n${framed}\n${rest}`)
}
