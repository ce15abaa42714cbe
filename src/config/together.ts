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
  problems.push(...batchProblems(checked))
  if (groupId !== undefined && formerGroupIds?.includes(groupId)) {
    problems.push(`formerGroupIds: ${show(groupId)} is groupId itself; name only groups of before`)
  }
  return problems
}

function batchProblems({ handler, batchHandler, batch, immediate, delivery }: Partial<Checked>): string[] {
  if (batchHandler === undefined) {
    return batch === undefined || handler === undefined
      ? []
      : [
          'batch: says how large a batch gets, and handler takes one record at a time; take it out, or give batchHandler',
        ]
  }
  return [
    ...(handler === undefined ? [] : ['batchHandler: is there beside handler; give one of the two']),
    ...(immediate === undefined
      ? []
      : ['immediate: gives quick tries to one record at a time, and batchHandler takes many; take it out']),
    // What a batch sends belongs to several records, and a transaction takes what belongs to one.
    ...(delivery === 'exactly-once'
      ? [
          "delivery: 'exactly-once' is for one record at a time, and batchHandler takes many; take it out, or give handler",
        ]
      : []),
  ]
}
