/** What `npm run test:fault` is told. Each error names the option, the value and the mend. */
import { parseArgs } from 'node:util'
import { FAULTS } from './faults'
import type { Fault } from './faults/fault'

export interface SuiteOptions {
  /** How long faults are done, minutes; the start and the drain come on top. */
  readonly minutes: number
  readonly seed: number
  readonly nodes: 1 | 3
  readonly delivery: 'at-least-once' | 'exactly-once'
  readonly ordering: 'partition' | 'key' | 'unordered'
  readonly faults: readonly Fault[]
  readonly list: boolean
}

export class BadOption extends Error {}

/** The short form: with start, drain and reconciliation about 75 s. */
const SHORT = 0.65

export const HELP = `npm run test:fault -- [options]
  --minutes N       how long faults are done (default ${SHORT}, the short form)
  --seed S          a whole number; the same seed gives the same plan (default: by the clock, printed)
  --nodes 1|3       brokers of the cluster that it starts (default 1)
  --delivery D      at-least-once (default) or exactly-once
  --ordering O      partition (default), key or unordered
  --only a,b        these faults alone
  --list            the faults there are
`

export function parseSuiteOptions(args: readonly string[], clock: () => number = Date.now): SuiteOptions {
  let values: Record<string, string | boolean | undefined>
  try {
    values = parseArgs({
      args: [...args],
      options: {
        minutes: { type: 'string' },
        seed: { type: 'string' },
        nodes: { type: 'string' },
        delivery: { type: 'string' },
        ordering: { type: 'string' },
        only: { type: 'string' },
        list: { type: 'boolean' },
      },
    }).values
  } catch (error) {
    throw new BadOption(`${(error as Error).message}\n${HELP}`)
  }
  const given = (name: string): string | undefined => values[name] as string | undefined
  const nodes = oneOf('nodes', given('nodes'), ['1', '3'] as const) === '3' ? 3 : 1
  return {
    minutes: numberOf('minutes', given('minutes'), SHORT, (n) => n > 0 && n <= 1_440, 'more than 0 and at most 1440'),
    seed: numberOf(
      'seed',
      given('seed'),
      clock() % 1_000_000,
      (n) => Number.isSafeInteger(n) && n >= 0,
      'a whole number from 0 up',
    ),
    nodes,
    delivery: oneOf('delivery', given('delivery'), ['at-least-once', 'exactly-once'] as const),
    ordering: oneOf('ordering', given('ordering'), ['partition', 'key', 'unordered'] as const),
    faults: faultsOf(given('only'), nodes),
    list: values['list'] === true,
  }
}

function numberOf(
  name: string,
  text: string | undefined,
  otherwise: number,
  good: (n: number) => boolean,
  meaning: string,
): number {
  if (text === undefined) return otherwise
  const value = text.trim() === '' ? NaN : Number(text)
  if (!good(value)) throw new BadOption(`--${name} is '${text}', which is not ${meaning}: give such a number`)
  return value
}

function oneOf<T extends string>(name: string, text: string | undefined, all: readonly [T, ...T[]]): T {
  if (text === undefined) return all[0]
  const found = all.find((one) => one === text)
  if (found === undefined) throw new BadOption(`--${name} is '${text}': give one of ${all.join(', ')}`)
  return found
}

function faultsOf(only: string | undefined, nodes: 1 | 3): Fault[] {
  const fits = (fault: Fault): boolean => fault.nodes?.includes(nodes) ?? true
  if (only === undefined) return FAULTS.filter(fits)
  return only.split(',').map((name) => {
    const fault = FAULTS.find((one) => one.name === name.trim())
    if (!fault) throw new BadOption(`--only names '${name}': there is ${FAULTS.map((one) => one.name).join(', ')}`)
    if (!fits(fault))
      throw new BadOption(`--only names '${name}', which needs --nodes ${fault.nodes?.join(' or ')}, not ${nodes}`)
    return fault
  })
}
