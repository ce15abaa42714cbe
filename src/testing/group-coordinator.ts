/**
 * The broker's side of consumer groups, as the classic protocol has it.
 *
 * A group is  Empty -> (a join) -> PreparingRebalance -> (all members have joined, or the rebalance time-out drops the
 * rest) -> CompletingRebalance -> (the leader's sync) -> Stable -> (a join, a leave, an expired session, the leader
 * joining anew) -> PreparingRebalance ...; without members it is Empty again. Offsets outlive all of this.
 * A member's session runs from each contact; it stands still while the member polls (its heartbeats are not timers
 * here) and while its join waits.
 *
 * Must never happen: two answers to one join; a commit accepted under a generation that is over; a partition given to
 * a member of the generation before.
 */
import type { InnerClock } from './clock'
import { codeOf, protocolError, type DeleteGroupsResult } from './errors'
import type { ProtocolErrorType } from './error-codes'
import { GroupOffsets, type ByTopic, type CommitRecord, type CommitTopic } from './group-offsets'
import { elect, sameProtocols, speaksTheSame } from './group-protocols'
import type { Group, GroupView, JoinAnswer, JoinRequest, Member } from './group-types'
import type { TopicStore } from './topics'

const NOTHING = Buffer.alloc(0)
/** `group.min.session.timeout.ms` and `group.max.session.timeout.ms`. */
const SESSION_RANGE = [6000, 1_800_000] as const

export class GroupCoordinator {
  /** Set by `explore` alone: told of each commit as it is taken. */
  onCommit: ((groupId: string, commit: CommitRecord) => void) | undefined
  private readonly groups = new Map<string, Group>()
  private joined = 0
  /** Groups whose node is down. */
  private readonly stopped = new Set<string>()

  constructor(
    private readonly clock: InnerClock,
    private readonly topics: TopicStore,
  ) {}

  join(request: JoinRequest): Promise<JoinAnswer> {
    if (request.sessionTimeout < SESSION_RANGE[0] || request.sessionTimeout > SESSION_RANGE[1]) {
      throw protocolError('INVALID_SESSION_TIMEOUT')
    }
    const group = this.groupOf(request.groupId)
    if (!speaksTheSame(group, request)) throw protocolError('INCONSISTENT_GROUP_PROTOCOL')
    const known = request.memberId === '' ? this.enrol(group, request) : group.members.get(request.memberId)
    if (known === undefined) throw protocolError('UNKNOWN_MEMBER_ID')
    const changed = request.memberId === '' || !sameProtocols(known.protocols, request.protocols)
    known.protocols = request.protocols
    known.sessionTimeout = request.sessionTimeout
    known.rebalanceTimeout = request.rebalanceTimeout
    known.nudge = request.nudge
    const settled = group.state === 'CompletingRebalance' || group.state === 'Stable'
    const leaderAnew = group.state === 'Stable' && group.leader === known.id
    // A member that asks again without news keeps its generation; only the leader's asking starts a new one.
    if (settled && !changed && !leaderAnew) return Promise.resolve(this.answerTo(group, known))
    return new Promise((resolve, reject) => {
      // An earlier join of the same member that still waits is replaced: its client has given up.
      known.join?.reject(protocolError('UNKNOWN_MEMBER_ID'))
      known.join = { resolve, reject }
      this.runSession(known, group)
      this.prepare(group)
    })
  }

  sync(
    groupId: string,
    generation: number,
    memberId: string,
    assignments: Map<string, Buffer>,
  ): Buffer | Promise<Buffer> {
    const { group, member } = this.memberOf(groupId, memberId, generation)
    if (group.state === 'PreparingRebalance') throw protocolError('REBALANCE_IN_PROGRESS')
    member.synced = true
    if ([...group.members.values()].every(({ synced }) => synced)) group.timer?.cancel()
    if (group.state === 'Stable') return member.assignment
    return new Promise((resolve, reject) => {
      member.sync = { resolve, reject }
      if (group.leader !== memberId) return
      group.state = 'Stable'
      for (const each of group.members.values()) {
        each.assignment = assignments.get(each.id) ?? NOTHING
        each.sync?.resolve(each.assignment)
        each.sync = undefined
        this.runSession(each, group)
      }
    })
  }

  heartbeat(groupId: string, generation: number, memberId: string): void {
    const { group, member } = this.memberOf(groupId, memberId, generation)
    this.runSession(member, group)
    if (group.state === 'PreparingRebalance') throw protocolError('REBALANCE_IN_PROGRESS')
  }

  leave(groupId: string, memberId: string): void {
    const group = this.groups.get(groupId)
    const member = group?.members.get(memberId)
    if (group === undefined || member === undefined) throw protocolError('UNKNOWN_MEMBER_ID')
    this.remove(group, member)
  }

  /** Answers the error of each partition that was refused; all others are stored. */
  commit(groupId: string, generation: number, memberId: string, topics: readonly CommitTopic[]): ProtocolErrorType[] {
    const group = this.groupOf(groupId)
    if (generation >= 0 || memberId !== '') {
      const { member } = this.memberOf(groupId, memberId, generation)
      this.runSession(member, group)
    } else if (group.state !== 'Empty') {
      throw protocolError('UNKNOWN_MEMBER_ID')
    }
    if (group.state === 'CompletingRebalance') throw protocolError('REBALANCE_IN_PROGRESS')
    const { offsets } = group
    const by = { memberId, generationId: generation, at: this.clock.now() }
    return this.told(groupId, offsets, () => offsets.commit(this.topics, topics, by))
  }

  /** Of a transaction: taken from whoever sends it, and pending until it ends. */
  commitPending(groupId: string, producerId: bigint, topics: readonly CommitTopic[]): ProtocolErrorType[] {
    return this.groupOf(groupId).offsets.commitPending(this.topics, topics, producerId)
  }

  endPending(groupId: string, producerId: bigint, commit: boolean): void {
    const offsets = this.groups.get(groupId)?.offsets
    if (offsets) this.told(groupId, offsets, () => offsets.endPending(producerId, commit, this.clock.now()))
  }

  private told<T>(groupId: string, offsets: GroupOffsets, act: () => T): T {
    const before = offsets.history.length
    const result = act()
    if (this.onCommit) for (const commit of offsets.history.slice(before)) this.onCommit(groupId, commit)
    return result
  }

  offsetsOf(groupId: string): ByTopic {
    return this.groups.get(groupId)?.offsets.all ?? new Map()
  }

  history(groupId: string): readonly CommitRecord[] {
    return this.groups.get(groupId)?.offsets.history ?? []
  }

  forgetTopic(topic: string): void {
    for (const group of this.groups.values()) group.offsets.forgetTopic(topic)
  }

  deleteGroup(groupId: string): DeleteGroupsResult {
    const group = this.groups.get(groupId)
    const type = group === undefined ? 'GROUP_ID_NOT_FOUND' : group.state === 'Empty' ? undefined : 'NON_EMPTY_GROUP'
    if (type !== undefined) return { groupId, errorCode: codeOf(type), error: protocolError(type) }
    this.groups.delete(groupId)
    return { groupId, errorCode: 0 }
  }

  names(): string[] {
    return [...this.groups.keys()]
  }

  view(groupId: string): GroupView {
    const group = this.groups.get(groupId)
    const members = [...(group?.members.values() ?? [])].map((member) => ({
      memberId: member.id,
      clientId: member.clientId,
      isLeader: group?.leader === member.id,
      metadata: member.protocols.find(({ name }) => name === group?.protocol)?.metadata ?? NOTHING,
      assignment: member.assignment,
    }))
    return {
      groupId,
      state: group?.state ?? 'Dead',
      generationId: group?.generation ?? -1,
      protocol: members.length > 0 ? (group?.protocol ?? '') : '',
      members,
    }
  }

  /** The member is polling: it heartbeats, whatever the clock does. `false`: it does something else from now on. */
  polling(groupId: string, memberId: string, polling: boolean): void {
    const group = this.groups.get(groupId)
    const member = group?.members.get(memberId)
    if (group === undefined || member === undefined) return
    member.polling = polling
    this.runSession(member, group)
  }

  rebalance(groupId: string): void {
    const group = this.groups.get(groupId)
    if (group !== undefined && group.members.size > 0) this.prepare(group)
  }

  expire(memberId: string): boolean {
    for (const group of this.groups.values()) {
      const member = group.members.get(memberId)
      if (member === undefined) continue
      this.remove(group, member)
      member.nudge()
      return true
    }
    return false
  }

  /** The node of these groups goes down: whoever waits is cut off by its connection, and sessions do not run. */
  stop(of: (group: string) => boolean): void {
    for (const group of this.groups.values()) {
      if (!of(group.id)) continue
      this.stopped.add(group.id)
      group.timer?.cancel()
      for (const member of group.members.values()) {
        member.session?.cancel()
        // Where the connection has broken, this is not heard any more.
        for (const waiter of [member.join, member.sync]) waiter?.reject(protocolError('NOT_COORDINATOR_FOR_GROUP'))
        member.join = undefined
        member.sync = undefined
      }
    }
  }

  /**
   * It is back, or another node is in its place: a generation that was complete still stands, one in the making is
   * forgotten; sessions run anew. Members of a group that has `moved` hear of it at their next heartbeat.
   */
  restart(of: (group: string) => boolean, moved: (group: string) => boolean): void {
    for (const group of this.groups.values()) {
      if (!this.stopped.has(group.id) || !of(group.id)) continue
      this.stopped.delete(group.id)
      if (moved(group.id)) for (const member of group.members.values()) member.nudge()
      if (group.state === 'Stable') {
        for (const member of group.members.values()) {
          member.polling = false
          this.runSession(member, group)
        }
      } else {
        group.members.clear()
        group.leader = undefined
        group.state = 'Empty'
      }
    }
  }

  private groupOf(id: string): Group {
    const found = this.groups.get(id)
    if (found !== undefined) return found
    const group: Group = {
      id,
      state: 'Empty',
      generation: 0,
      protocol: '',
      leader: undefined,
      members: new Map(),
      offsets: new GroupOffsets(),
      timer: undefined,
    }
    this.groups.set(id, group)
    return group
  }

  private memberOf(groupId: string, memberId: string, generation: number): { group: Group; member: Member } {
    const group = this.groups.get(groupId)
    const member = group?.members.get(memberId)
    if (group === undefined || member === undefined) throw protocolError('UNKNOWN_MEMBER_ID')
    if (generation !== group.generation) throw protocolError('ILLEGAL_GENERATION')
    return { group, member }
  }

  private enrol(group: Group, { clientId, protocols, sessionTimeout, rebalanceTimeout, nudge }: JoinRequest): Member {
    // Counted where kafka has a random id: a test that depends on the order of members stays the same.
    const id = `${clientId}-${String(++this.joined).padStart(8, '0')}`
    const member: Member = {
      id,
      clientId,
      protocols,
      sessionTimeout,
      rebalanceTimeout,
      nudge,
      assignment: NOTHING,
      join: undefined,
      sync: undefined,
      synced: false,
      session: undefined,
      polling: false,
    }
    group.members.set(id, member)
    group.leader ??= id
    return member
  }

  private prepare(group: Group): void {
    if (group.state !== 'PreparingRebalance') {
      const first = group.state === 'Empty'
      for (const member of group.members.values()) {
        member.sync?.reject(protocolError('REBALANCE_IN_PROGRESS'))
        member.sync = undefined
        if (group.state === 'CompletingRebalance') member.assignment = NOTHING
      }
      group.state = 'PreparingRebalance'
      group.timer?.cancel()
      group.timer = this.clock.detached(() => this.clock.after(patienceOf(group), () => this.complete(group)))
      // Consumers that start together join together: a real broker waits 3 s for that, here it is one macrotask.
      if (first) {
        this.clock.soon(() => this.completeIfAllJoined(group))
        return
      }
      for (const member of [...group.members.values()]) if (member.join === undefined) member.nudge()
    }
    if (group.generation > 0) this.completeIfAllJoined(group)
  }

  private completeIfAllJoined(group: Group): void {
    if (group.state !== 'PreparingRebalance') return
    if ([...group.members.values()].every((member) => member.join !== undefined)) this.complete(group)
  }

  private complete(group: Group): void {
    group.timer?.cancel()
    group.timer = undefined
    for (const member of [...group.members.values()]) {
      if (member.join !== undefined) continue
      member.session?.cancel()
      group.members.delete(member.id)
      member.nudge()
    }
    group.generation++
    const [first] = group.members.keys()
    if (first === undefined) {
      group.state = 'Empty'
      group.leader = undefined
      return
    }
    if (group.leader === undefined || !group.members.has(group.leader)) group.leader = first
    group.state = 'CompletingRebalance'
    group.protocol = elect(group)
    for (const member of group.members.values()) {
      const join = member.join
      member.join = undefined
      member.synced = false
      member.assignment = NOTHING
      this.runSession(member, group)
      join?.resolve(this.answerTo(group, member))
    }
    group.timer = this.clock.detached(() => this.clock.after(patienceOf(group), () => this.dropUnsynced(group)))
  }

  /** A member that has joined and never syncs would hold up its group for ever; its heartbeats are answered all the while. */
  private dropUnsynced(group: Group): void {
    for (const member of [...group.members.values()]) {
      if (member.synced) continue
      this.remove(group, member)
      member.nudge()
    }
  }

  private answerTo(group: Group, member: Member): JoinAnswer {
    const isLeader = group.leader === member.id
    const members = isLeader ? [...group.members.values()] : []
    return {
      generationId: group.generation,
      groupProtocol: group.protocol,
      leaderId: group.leader ?? '',
      memberId: member.id,
      members: members.map(({ id, protocols }) => ({
        memberId: id,
        memberMetadata: protocols.find(({ name }) => name === group.protocol)?.metadata ?? NOTHING,
      })),
    }
  }

  private remove(group: Group, member: Member): void {
    member.session?.cancel()
    group.members.delete(member.id)
    member.join?.reject(protocolError('UNKNOWN_MEMBER_ID'))
    member.sync?.reject(protocolError('UNKNOWN_MEMBER_ID'))
    member.join = undefined
    member.sync = undefined
    const [first] = group.members.keys()
    if (group.leader === member.id) group.leader = first
    if (group.state === 'PreparingRebalance') this.completeIfAllJoined(group)
    else if (first !== undefined) this.prepare(group)
    else this.complete(group)
  }

  /** Starts the member's session anew, or stops it where it stands still. */
  private runSession(member: Member, group: Group): void {
    member.session?.cancel()
    member.session = undefined
    if (this.stopped.has(group.id) || member.polling || member.join !== undefined || !group.members.has(member.id))
      return
    const expire = (): void => {
      if (!group.members.has(member.id)) return
      this.remove(group, member)
      member.nudge()
    }
    member.session = this.clock.detached(() => this.clock.after(member.sessionTimeout, expire))
  }
}

const patienceOf = (group: Group): number =>
  Math.max(...[...group.members.values()].map(({ rebalanceTimeout }) => rebalanceTimeout))
