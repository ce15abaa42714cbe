import { HEADER } from '../envelope'

/**
 * How far the clocks of two of our processes may be apart (a guess on the generous side: NTP holds them within a
 * second). A due time that is later than its tier allows, and by more than this, was not written by us.
 */
export const CLOCK_SKEW_MS = 60_000

/**
 * The time from which a record of a tier may be handled, ms since the epoch.
 *
 * - As `x-due-at` says, where that is no later than the tier's delay (its jitter and the clock skew included) from now.
 * - Later: a whole delay (with jitter) from when the record was written, so that one record never parks a partition for
 *   longer than its tier, also where it is read again and again.
 * - Missing or unreadable: a delay from when the record was written.
 *
 * When it was written is the record's timestamp; not believed where it is in the future or there is none.
 */
export function dueTime(
  said: number | undefined,
  timestamp: number,
  delayMs: number,
  jitter: number,
  receivedAt: number,
  problems: string[],
): number {
  const written = timestamp > 0 ? Math.min(timestamp, receivedAt) : receivedAt
  if (said === undefined) {
    problems.push(`no readable ${HEADER.dueAt}; the delay counts from the record's timestamp`)
    return written + delayMs
  }
  const longest = Math.ceil(delayMs * (1 + jitter))
  if (said <= receivedAt + longest + CLOCK_SKEW_MS) return said
  problems.push(
    `${HEADER.dueAt} is ${said - receivedAt - longest} ms later than its tier allows; it is brought forward`,
  )
  return written + longest
}
