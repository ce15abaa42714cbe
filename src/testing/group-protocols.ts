/** Which protocol (assigner) a group speaks. */
import type { Group, JoinRequest, Protocol } from './group-types'

/** Whether a member that asks to join has a protocol that all others have too. */
export function speaksTheSame(group: Group, { memberId, protocols }: JoinRequest): boolean {
  const others = [...group.members.values()].filter(({ id }) => id !== memberId)
  return protocols.some(({ name }) => others.every((member) => member.protocols.some((one) => one.name === name)))
}

/** Each member votes for the first of its protocols that all members speak. */
export function elect(group: Group): string {
  const members = [...group.members.values()]
  const votes = new Map<string, number>()
  for (const { protocols } of members) {
    const vote = protocols.find(({ name }) => members.every((m) => m.protocols.some((one) => one.name === name)))
    if (vote !== undefined) votes.set(vote.name, (votes.get(vote.name) ?? 0) + 1)
  }
  return [...votes].sort((a, b) => b[1] - a[1])[0]?.[0] ?? ''
}

export function sameProtocols(a: readonly Protocol[], b: readonly Protocol[]): boolean {
  return (
    a.length === b.length && a.every(({ name, metadata }, i) => b[i]?.name === name && b[i].metadata.equals(metadata))
  )
}
