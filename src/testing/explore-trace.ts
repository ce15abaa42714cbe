/** What happened in one run of `explore`, in order, and what is said of a run that broke something. */
import { RetrylineError } from '../errors'
import type { Request } from './broker'
import type { CommitRecord } from './group-offsets'

export type Happening =
  | { readonly what: 'sent'; readonly request: Request }
  | { readonly what: 'done' | 'answered'; readonly request: Request; readonly error?: unknown }
  | { readonly what: 'commit'; readonly group: string; readonly commit: CommitRecord }
  | { readonly what: 'event'; readonly who: string; readonly event: object & { readonly type: string } }
  | { readonly what: 'fault' | 'note' | 'broken'; readonly text: string }

interface Line {
  readonly at: number
  readonly it: Happening
}

/** Requests that say little, and events that say what other lines say. */
const DULL_REQUESTS = new Set(['metadata', 'heartbeat', 'admin', 'positions', 'coordinator'])
const DULL_EVENTS = new Set(['lane', 'published', 'committed'])

export class Trace {
  private readonly lines: Line[] = []

  /** `now`: virtual ms since the run began. */
  constructor(private readonly now: () => number) {}

  get length(): number {
    return this.lines.length
  }

  add(it: Happening): void {
    this.lines.push({ at: this.now(), it })
  }

  /** All of it, as text: two runs of one seed are the same, line by line. */
  all(): string[] {
    return this.lines.map(lineOf)
  }

  /** The last lines that tell a person something. */
  tail(count: number): string[] {
    const telling = this.lines.filter(({ it }) => isTelling(it))
    return telling.slice(-count).map(lineOf)
  }
}

function isTelling(it: Happening): boolean {
  if (it.what === 'event') return !DULL_EVENTS.has(it.event.type)
  if (it.what === 'sent') return it.request.kind === 'publish' || it.request.kind === 'commit'
  if (it.what !== 'done' && it.what !== 'answered') return true
  if (it.error !== undefined) return true
  return it.what === 'done' ? !DULL_REQUESTS.has(it.request.kind) : it.request.kind === 'publish'
}

const lineOf = ({ at, it }: Line): string => `${String(at).padStart(8)} ms  ${textOf(it)}`

function textOf(it: Happening): string {
  switch (it.what) {
    case 'sent':
      return `${requestOf(it.request)}: sent`
    case 'done':
      return `${requestOf(it.request)}: ${it.error === undefined ? 'done at the broker' : `refused: ${errorOf(it.error)}`}`
    case 'answered':
      return `${requestOf(it.request)}: ${it.error === undefined ? 'answered' : `failed: ${errorOf(it.error)}`}`
    case 'commit': {
      const { topic, partition, offset, memberId, generationId } = it.commit
      return `${it.group}: ${topic}/${partition} is committed at ${offset} by ${memberId || 'an admin'} (generation ${generationId})`
    }
    case 'event':
      return `${it.who}: ${eventOf(it.event)}`
    case 'fault':
      return `!! ${it.text}`
    case 'broken':
      return `** ${it.text}`
    case 'note':
      return it.text
  }
}

function requestOf({ client, label, topics = [] }: Request): string {
  const who = (client as { clientId?: string } | undefined)?.clientId ?? 'client'
  const partitions = topics.flatMap(({ topic, partitions: ids }) => (ids ?? []).map((id) => `${topic}/${id}`))
  return `${who}: ${label}${partitions.length > 0 ? ` [${partitions.join(' ')}]` : ''}`
}

function eventOf({ type, ...fields }: object & { readonly type: string }): string {
  const of = Object.entries(fields).filter(([name, value]) => name !== 'groupId' && value !== undefined)
  const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
  return [type, ...of.map(([name, value]) => `${name}=${shown(value)}`)].join(' ')
}

const errorOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message.split('\n')[0] ?? ''}` : String(error)

/** A run that broke something. `code` is RETRYLINE_TESTING. */
export class ExploreError extends RetrylineError {
  readonly seed: number
  /** What the scenario said was broken, as `P1`; undefined where it threw an error of its own. */
  readonly promise: string | undefined
  /** Faults that were left out of the run that is told: give them to `explore({ seed, without })`. */
  readonly without: readonly number[]
  /** Every line of that run. */
  readonly trace: readonly string[]

  constructor(of: {
    seed: number
    promise: string | undefined
    text: string
    without: readonly number[]
    trace: Trace
    tail: number
    cause: unknown
  }) {
    const { seed, promise, text, without, trace, tail } = of
    const again =
      without.length > 0
        ? `{ seed: ${seed}, without: [${without.join(', ')}], scenario }`
        : `{ seed: ${seed}, scenario }`
    const head = `seed ${seed} breaks ${promise === undefined ? 'the scenario' : promise}: ${text}`
    const last = trace.tail(tail)
    super(
      'RETRYLINE_TESTING',
      [head, `Run it again: explore(${again})`, `The last ${last.length} events:`, ...last].join('\n'),
      {
        cause: of.cause,
      },
    )
    this.name = 'ExploreError'
    this.seed = seed
    this.promise = promise
    this.without = without
    this.trace = trace.all()
  }
}
