import { classifyProblems } from '../classify'
import type { Checked } from './fields'
import { show } from './show'

/** What can only be said of two options together. Speaks only of those that are fine by themselves. */
export function together(checked: Partial<Checked>): string[] {
  const problems = 'classify' in checked ? classifyProblems(checked.classify) : []
  const { sessionTimeout, heartbeatInterval, immediate, handlerTimeout, groupId, formerGroupIds } = checked
  if (sessionTimeout !== undefined && heartbeatInterval !== undefined && heartbeatInterval >= sessionTimeout) {
    const third = Math.floor(sessionTimeout / 3)
    problems.push(
      `heartbeatInterval: ${heartbeatInterval} ms is not below sessionTimeout (${sessionTimeout} ms), so the broker would` +
        ` expel the consumer between two heartbeats; give a third of it, ${third} ms, or less`,
    )
  }
  if (immediate && handlerTimeout !== undefined && immediate.tries * immediate.delay >= handlerTimeout) {
    problems.push(
      `immediate: ${immediate.tries} tries ${immediate.delay} ms apart leave nothing of handlerTimeout` +
        ` (${handlerTimeout} ms), which bounds them all; give fewer, or a longer handlerTimeout`,
    )
  }
  if (groupId !== undefined && formerGroupIds?.includes(groupId)) {
    problems.push(`formerGroupIds: ${show(groupId)} is groupId itself; name only groups of before`)
  }
  return problems
}
