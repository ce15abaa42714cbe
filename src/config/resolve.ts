/**
 * From options to settings. Every problem is found before anything is thrown, and each is one line: field, value, mend.
 */
import type { ClassifyOption } from '../classify'
import { RetrylineError } from '../errors'
import { clockOf, systemClock } from '../ports'
import { consoleLogger, errorText } from '../observe'
import { buildTopology, expandSchedule, formatDuration, topologyProblems } from '../topology'
import type { TopologyInput } from '../topology'
import { checkFields } from './check-fields'
import type { Checked } from './fields'
import type { Settings } from './settings'
import { show } from './show'
import { together } from './together'
import { scheduleWarnings } from './warnings'

/**
 * Throws RETRYLINE_CONFIG with every problem in `problems` where there is any. The types of the options are for the
 * editor; here they are whatever a caller in JavaScript gives.
 */
export function resolveOptions(options: unknown): Settings {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw refused([`options: ${show(options)} is not an object; give { kafka, groupId, topic, schedule, handler }`])
  }
  const { checked, problems } = checkFields(options)
  problems.push(...together(checked))
  const input = topologyInput(checked, problems)
  if (input) problems.push(...deadlineProblems(input), ...topologyProblems(input).map(inOptionWords))
  if (problems.length > 0 || !input) throw refused(problems)
  return freeze(checked as Checked, input)
}

function refused(problems: readonly string[]): RetrylineError {
  const head =
    problems.length === 1 ? 'The configuration has a problem' : `The configuration has ${problems.length} problems`
  const lines = problems.map((problem) => `\n- ${problem}`)
  return new RetrylineError('RETRYLINE_CONFIG', `${head}:${lines.join('')}`, { problems: Object.freeze([...problems]) })
}

/**
 * Bytes. What waits until it is due is held for as long as that takes, and holds twice its size in memory; it need be no more
 * than what is handled until the next fetch comes.
 */
const BUFFERED = { main: 64 * 1024 ** 2, tier: 24 * 1024 ** 2 }

const WAYS = { 'by-topic': 'topic', 'by-topic-and-group': 'group' } as const

/** The chain's input, or undefined where a part of it is no good (which is then among the problems). */
function topologyInput(checked: Partial<Checked>, problems: string[]): TopologyInput | undefined {
  const { groupId, topic, topicNames, formerGroupIds, formerTiers } = checked
  const expanded = 'schedule' in checked ? expand(checked.schedule, checked.allowManyAttempts ?? false) : undefined
  if (expanded && !expanded.ok) problems.push(...expanded.problems)
  if (!expanded?.ok || groupId === undefined || topic === undefined || topicNames === undefined) return undefined
  if (formerGroupIds === undefined || formerTiers === undefined || !('deadline' in checked)) return undefined
  return Object.freeze({
    topics: Object.freeze([...topic]),
    groupId,
    delays: Object.freeze([...expanded.delays]),
    jitter: expanded.jitter,
    naming: typeof topicNames === 'string' ? WAYS[topicNames] : topicNames,
    deadlineMs: checked.deadline,
    formerTiers: Object.freeze(formerTiers.map((delayMs) => Object.freeze({ delayMs }))),
    formerGroupIds: Object.freeze([...formerGroupIds]),
  })
}

function expand(schedule: unknown, allowManyAttempts: boolean): ReturnType<typeof expandSchedule> {
  try {
    return expandSchedule(schedule, { allowManyAttempts })
  } catch (error) {
    return { ok: false, problems: [`schedule: reading it threw (${errorText(error)}); give a plain list or a backoff`] }
  }
}

/** No wait would ever be waited for: every failed record would be a dead letter, and the schedule stand there in vain. */
function deadlineProblems({ deadlineMs, delays }: TopologyInput): string[] {
  const [first] = delays
  if (deadlineMs === undefined || first === undefined || first <= deadlineMs) return []
  return [
    `deadline: ${formatDuration(deadlineMs)} is shorter than the first wait of the schedule (${formatDuration(first)}), so no` +
      ' record would be tried again; give a longer deadline, or a shorter first wait',
  ]
}

/** The topology knows its naming function by another name, and knows names that no option has, but two of them make. */
function inOptionWords(problem: string): string {
  if (/^(retry|dead letter) topic /.test(problem)) return `${problem}; choose another topic, or other topicNames`
  return problem.replace(/^naming:/, 'topicNames:')
}

/** A list of rules that is changed later must not change what was checked. */
function ownCopy(classify: ClassifyOption | undefined): ClassifyOption | undefined {
  return typeof classify === 'object' ? Object.freeze([...classify]) : classify
}

function freeze(checked: Checked, input: TopologyInput): Settings {
  const { immediate, startFrom, deadLetterLimit: limit, batchHandler, batch } = checked
  return Object.freeze({
    kafka: checked.kafka,
    groupId: checked.groupId,
    topics: input.topics,
    topology: buildTopology(input),
    topologyInput: input,
    classify: ownCopy(checked.classify as ClassifyOption | undefined),
    unknownErrors: checked.unknownErrors,
    handler: checked.handler,
    batch:
      batchHandler &&
      Object.freeze({
        handler: batchHandler,
        maxRecords: batch?.maxRecords ?? 100,
        maxBytes: batch?.maxBytes ?? 1024 ** 2,
        lingerMs: batch?.linger ?? 0,
      }),
    ordering: checked.ordering,
    concurrency: checked.concurrency,
    immediate: Object.freeze({ tries: immediate?.tries ?? 0, delayMs: immediate?.delay ?? 0 }),
    startFrom: startFrom instanceof Date ? startFrom.getTime() : startFrom,
    handlerTimeoutMs: checked.handlerTimeout,
    shutdownTimeoutMs: checked.shutdownTimeout,
    publishTimeoutMs: checked.publishTimeout,
    delivery: checked.delivery,
    commitIntervalMs: checked.commitInterval,
    deadlineMs: checked.deadline,
    outage: Object.freeze({
      failures: checked.outage.failures,
      withinMs: checked.outage.within,
      probeMs: checked.outage.probe,
      maxProbeMs: Math.max(checked.outage.probe, checked.outage.maxProbe),
    }),
    deadLetterLimit: limit && Object.freeze({ share: limit.share, burst: limit.burst, withinMs: limit.within }),
    crashLimit: checked.crashLimit,
    topicSetup: checked.topicSetup,
    sameGroupInProcess: checked.sameGroupInProcess,
    release: checked.release,
    hooks: Object.freeze([...checked.hooks]),
    // On a fake broker the lines carry the time of its clock.
    logger: checked.logger ?? consoleLogger({ clock: clockOf(checked.kafka) ?? systemClock }),
    sessionTimeoutMs: checked.sessionTimeout,
    heartbeatIntervalMs: checked.heartbeatInterval,
    rebalanceTimeoutMs: checked.rebalanceTimeout,
    maxBufferedBytes: checked.maxBufferedBytes ?? BUFFERED.main,
    maxWaitingBytes: checked.maxBufferedBytes ?? BUFFERED.tier,
    maxBufferedRecords: checked.maxBufferedRecords,
    decode: checked.decode ?? (checked.schema ? 'json' : undefined),
    schema: checked.schema,
    warnings: Object.freeze(scheduleWarnings(checked.schedule)),
  })
}
