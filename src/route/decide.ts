import type { FailureReason } from '../envelope'
import type { Random } from '../ports'
import type { Tier, Topology } from '../topology'

/** What the classifier said, as far as routing needs it. */
export type RoutedVerdict =
  | { readonly kind: 'retry'; readonly after?: number | undefined }
  | { readonly kind: 'dead-letter'; readonly reason: FailureReason }

export interface RetryDecision {
  readonly kind: 'retry'
  readonly topic: string
  readonly tier: Tier
  /** The attempt about to be made. */
  readonly attempt: number
  /** ms since the epoch. */
  readonly dueAt: number
}

export interface DeadLetterDecision {
  readonly kind: 'dead-letter'
  readonly topic: string
  readonly reason: FailureReason
  /** The number of attempts made. */
  readonly attempt: number
}

export type Decision = RetryDecision | DeadLetterDecision

export interface RouteInput {
  /** The main topic that the record belongs to. */
  readonly main: string
  /** The attempt that failed. */
  readonly attempt: number
  /** ms since the epoch; `undefined` where this is the first failure. */
  readonly firstFailedAt: number | undefined
  readonly verdict: RoutedVerdict
  /** Whether the attempt ended because the handler took too long. */
  readonly timedOut?: boolean | undefined
  readonly topology: Topology
  /** ms since the epoch. */
  readonly now: number
  readonly random: Random
}

/**
 * Where a failed record goes: topic, attempt and due time in one answer. Pure. In this order:
 *
 * 1. a dead-letter verdict goes to the dead letter topic with its own reason;
 * 2. so does the last attempt: `timeout` where the handler took too long, else `exhausted`;
 * 3. the tier is that of the next attempt, or a longer one of a later attempt where the verdict asks to wait longer; the
 *    attempt still counts one, and the wait is that of the tier (jitter makes it longer, never shorter);
 * 4. an attempt that would be due after the deadline is not waited for: `deadline`.
 */
export function decideRoute(input: RouteInput): Decision {
  const { attempt, verdict, topology, now } = input
  if (verdict.kind === 'dead-letter') return toDeadLetter(input, verdict.reason)
  const tier = topology.tierForDelay(verdict.after ?? 0, attempt + 1)
  if (tier === undefined) return toDeadLetter(input, input.timedOut === true ? 'timeout' : 'exhausted')
  const dueAt = now + tier.delayMs + Math.round(tier.delayMs * topology.jitter * input.random())
  if (topology.deadlineMs !== undefined && (input.firstFailedAt ?? now) + topology.deadlineMs < dueAt) {
    return toDeadLetter(input, 'deadline')
  }
  return { kind: 'retry', topic: topology.retryTopic(input.main, tier), tier, attempt: attempt + 1, dueAt }
}

/** The decision to dead-letter for a reason that no verdict gives (`bad-envelope`, `too-large`, `crash-loop`). */
export function toDeadLetter(
  record: { readonly main: string; readonly attempt: number; readonly topology: Topology },
  reason: FailureReason,
): DeadLetterDecision {
  const topic = record.topology.deadLetterTopic(record.main)
  return { kind: 'dead-letter', topic, reason, attempt: record.attempt }
}
