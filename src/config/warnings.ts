/** What is legal, and yet seldom meant. */

/** A number below this is taken for seconds by whoever wrote it, more often than not. */
const SUSPICIOUS_BELOW_MS = 1000

/** One line for each wait of a schedule that is good, but whose unit may have been forgotten; for the log at start. Never throws. */
export function scheduleWarnings(schedule: unknown): string[] {
  if (Array.isArray(schedule)) return schedule.flatMap((wait, i) => forgottenUnit(wait, `schedule[${i}]`))
  const { first, max } = schedule as { first?: unknown; max?: unknown }
  return [...forgottenUnit(first, 'schedule.first'), ...forgottenUnit(max, 'schedule.max')]
}

function forgottenUnit(wait: unknown, field: string): string[] {
  if (typeof wait !== 'number' || wait >= SUSPICIOUS_BELOW_MS) return []
  return [`${field}: ${wait} is ${wait} ms; write '${wait}s' if seconds are meant, and '${wait}ms' if not`]
}
