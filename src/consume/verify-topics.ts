/**
 * Looks at every topic that is read or written before anything is, so that a typo makes no topic and a bad setting
 * loses no record. All that is wrong is told at once, each with the command that mends it.
 */
import { OWN_HEADER_BUDGET } from '../envelope'
import { RetrylineError, isRetrylineError, type ForbiddenError } from '../errors'
import { errorText } from '../observe'
import { allowCommand, type Clock, type TopicAdmin, type TopicSettings } from '../ports'
import { operationsOn, type TopicRole, type Topology } from '../topology'
import {
  judgeSettings,
  line,
  missingTopic,
  partitionWarning,
  tightTopics,
  wantedTopic,
  withoutPartitions,
} from './topic-problems'
import type { Surroundings } from './topic-problems'

export interface VerifyOptions {
  /** Connected. */
  readonly admin: TopicAdmin
  readonly topology: Topology
  readonly mode: 'verify' | 'create' | 'warn'
  readonly clock: Clock
  /** Told of what does not fail the start. */
  readonly warn: (problem: string) => void
  /** What an error of a connection means, and the mend. */
  readonly explainConnect?: (error: unknown) => string | undefined
  /** The most bytes that our headers add to a record. */
  readonly headerBudgetBytes?: number
}

/** How long a topic that was made may take to be seen, and how often to look. */
const APPEARS_WITHIN = 30_000
const LOOK_EVERY = 200

/**
 * Partition count by topic. A topic that the cluster does not let us see (mode `warn` only) is not in it.
 * Rejects with RETRYLINE_TOPICS and every problem, or with RETRYLINE_CONNECT where the cluster cannot be asked at all.
 */
export async function verifyTopics(options: VerifyOptions): Promise<Map<string, number>> {
  const { topology, mode, warn } = options
  const roles = topology.allTopics()
  let { counts, hidden } = await countPartitions(options, roles)
  const { settings, problems } = await readSettings(options, [...counts.keys()])
  const around = (role: TopicRole): Surroundings => ({
    mainPartitions: counts.get(role.main),
    mainSettings: settings.get(role.main),
    headerBudgetBytes: options.headerBudgetBytes ?? OWN_HEADER_BUDGET,
    jitter: topology.jitter,
  })
  const missing = (): TopicRole[] => roles.filter(({ topic }) => !counts.has(topic) && !hidden.has(topic))

  const tight: string[] = []
  for (const role of roles) {
    const own = settings.get(role.topic)
    if (own === undefined) continue
    const found = judgeSettings(role, own, around(role))
    problems.push(...found.problems)
    found.warnings.forEach(warn)
    if (found.tight) tight.push(role.topic)
  }
  // Topics made with the broker's defaults are all alike in this, so it is one line, and no reason to refuse them.
  if (tight.length > 0) warn(tightTopics(tight, options.headerBudgetBytes ?? OWN_HEADER_BUDGET))
  if (mode === 'warn') problems.splice(0).forEach(warn)

  const unusable = (absent: readonly TopicRole[]): string[] => [
    ...absent.map((role) => missingTopic(role, around(role))),
    ...roles.filter(({ topic }) => counts.get(topic) === 0).map(withoutPartitions),
  ]
  if (mode === 'create') {
    const [toMake, others] = [missing().filter(isMade), missing().filter((role) => !isMade(role))]
    // A start that is refused anyway makes nothing: the other topics may belong to a name with a typing error.
    const refusals = [...unusable(others), ...problems]
    if (refusals.length > 0) throw refused(refusals, mode)
    if (toMake.length > 0) {
      const failure = await createTopics(options, toMake, around)
      ;({ counts, hidden } = await countPartitions(options, roles))
      if (failure !== undefined && missing().length > 0) problems.push(failure)
    }
  }

  for (const role of roles) {
    const partitions = counts.get(role.topic)
    const warning = partitions ? partitionWarning(role, partitions, around(role)) : undefined
    if (warning !== undefined) warn(warning)
  }
  const refusals = [...unusable(missing()), ...problems]
  if (refusals.length > 0) throw refused(refusals, mode)
  return counts
}

/** Whether `create` makes it. */
function isMade({ role, tier }: TopicRole): boolean {
  return role !== 'main' && !tier?.former
}

interface Counts {
  readonly counts: Map<string, number>
  /** Topics that we may not see. */
  readonly hidden: ReadonlySet<string>
}

async function countPartitions(options: VerifyOptions, roles: readonly TopicRole[]): Promise<Counts> {
  const { admin, mode, warn } = options
  const names = roles.map(({ topic }) => topic)
  try {
    return { counts: new Map(await admin.partitions(names)), hidden: new Set() }
  } catch (error) {
    if (!isForbidden(error)) throw unreachable(error, options)
    if (mode !== 'warn')
      throw refused(forbiddenLines('the topics may not be looked at', 'Describe', error, options), mode, error)
  }
  // One topic that is hidden makes the whole question fail, so ask for each by itself.
  const counts = new Map<string, number>()
  const hidden = new Set<string>()
  for (const name of names) {
    try {
      for (const [topic, count] of await admin.partitions([name])) counts.set(topic, count)
    } catch (error) {
      if (!isForbidden(error)) throw unreachable(error, options)
      hidden.add(name)
      forbiddenLines(name, 'Describe', error, options).forEach(warn)
    }
  }
  return { counts, hidden }
}

async function readSettings(
  options: VerifyOptions,
  names: readonly string[],
): Promise<{ settings: ReadonlyMap<string, TopicSettings>; problems: string[] }> {
  const { admin, mode } = options
  if (names.length === 0) return { settings: new Map(), problems: [] }
  try {
    return { settings: await admin.settings(names), problems: [] }
  } catch (error) {
    if (!isForbidden(error) && mode !== 'warn') throw unreachable(error, options)
    const problems = forbiddenLines('the settings of the topics cannot be checked', 'DescribeConfigs', error, options)
    return { settings: new Map(), problems }
  }
}

/** Makes the topics and waits until they can be seen; what went wrong, if anything did. */
async function createTopics(
  { admin, clock }: VerifyOptions,
  roles: readonly TopicRole[],
  around: (role: TopicRole) => Surroundings,
): Promise<string | undefined> {
  let failure: string | undefined
  try {
    await admin.createTopics(roles.map((role) => wantedTopic(role, around(role))))
  } catch (error) {
    // Another member may have been faster: what counts is whether they are there.
    failure = `making the missing topics failed: ${errorText(error)}; allow it, or make them by the commands above`
  }
  const names = roles.map(({ topic }) => topic)
  const deadline = clock.monotonic() + (failure === undefined ? APPEARS_WITHIN : LOOK_EVERY)
  for (;;) {
    const seen = await admin.partitions(names).catch(() => new Map<string, number>())
    if (names.every((name) => (seen.get(name) ?? 0) > 0)) return failure
    if (clock.monotonic() >= deadline) return failure ?? 'the topics were made, but cannot be seen yet; start again'
    await new Promise<void>((resolve) => clock.after(LOOK_EVERY, resolve))
  }
}

function isForbidden(error: unknown): boolean {
  if (isRetrylineError(error, 'RETRYLINE_FORBIDDEN')) return true
  const type = (error as { type?: unknown } | null | undefined)?.type
  return /authoriz/i.test(`${typeof type === 'string' ? type : ''} ${errorText(error)}`)
}

/** One line for each topic that was refused, with the command that allows all that this consumer needs of it. */
function forbiddenLines(what: string, operation: string, error: unknown, options: VerifyOptions): string[] {
  const instead = "or set topicSetup: 'warn'"
  if (!isRetrylineError(error, 'RETRYLINE_FORBIDDEN')) {
    return [`${what}: ${errorText(error)}; allow ${operation} on them to this user, ${instead}`]
  }
  const { principal, resources } = error as ForbiddenError
  const checked = options.mode !== 'warn'
  return options.topology
    .allTopics()
    .filter(({ topic }) => resources.includes(topic))
    .map((role) => {
      const command = allowCommand(principal, operationsOn(role.role, checked), 'topic', [role.topic])
      const who = principal ?? "the client's principal"
      const mend = operation === 'DescribeConfigs' && checked ? `, ${instead}` : ''
      return line(role, `${who} may not ${operation} it; allow what this consumer needs of it: ${command}${mend}`)
    })
}

function unreachable(error: unknown, { explainConnect }: VerifyOptions): RetrylineError {
  const mend = explainConnect?.(error) ?? 'check that the brokers of the Kafka client answer, and its ssl and sasl'
  const message = `The cluster could not be asked about the topics (${errorText(error)}); ${mend}`
  return new RetrylineError('RETRYLINE_CONNECT', message, { cause: error })
}

function refused(problems: readonly string[], mode: string, cause?: unknown): RetrylineError {
  const lines = problems.map((problem) => `\n- ${problem}`).join('')
  const head = `The topics are not as they must be (${problems.length} to mend):`
  return new RetrylineError('RETRYLINE_TOPICS', `${head}${lines}${hintsFor(problems, mode)}`, {
    problems: Object.freeze([...problems]),
    ...(cause !== undefined && { cause }),
  })
}

function hintsFor(problems: readonly string[], mode: string): string {
  const made = "topicSetup: 'create' makes missing retry and dead letter topics"
  if (mode === 'verify') return `\nIn development, ${made}.`
  const isMain = problems.some((problem) => problem.includes('(main topic): does not exist'))
  return mode === 'create' && isMain ? `\n${made}, never a main topic: a typing error would make one too.` : ''
}
