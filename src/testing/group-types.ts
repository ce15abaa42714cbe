/** What a group is, to the coordinator and to those who look at it. */
import type { Timer } from '../ports'
import type { GroupOffsets } from './group-offsets'

export type GroupState = 'Empty' | 'PreparingRebalance' | 'CompletingRebalance' | 'Stable' | 'Dead'

export interface Protocol {
  readonly name: string
  readonly metadata: Buffer
}

export interface JoinRequest {
  readonly groupId: string
  readonly memberId: string
  readonly clientId: string
  readonly sessionTimeout: number
  readonly rebalanceTimeout: number
  readonly protocols: readonly Protocol[]
  /** The broker has news that this member would learn at its next heartbeat. */
  readonly nudge: () => void
}

export interface JoinAnswer {
  readonly generationId: number
  readonly groupProtocol: string
  readonly leaderId: string
  readonly memberId: string
  readonly members: { memberId: string; memberMetadata: Buffer }[]
}

export interface MemberView {
  readonly memberId: string
  readonly clientId: string
  readonly isLeader: boolean
  /** Raw, as the protocol carries them. */
  readonly metadata: Buffer
  readonly assignment: Buffer
}

export interface GroupView {
  readonly groupId: string
  readonly state: GroupState
  readonly generationId: number
  readonly protocol: string
  readonly members: readonly MemberView[]
}

export interface Waiter<T> {
  resolve(value: T): void
  reject(error: Error): void
}

export interface Member {
  readonly id: string
  readonly clientId: string
  protocols: readonly Protocol[]
  sessionTimeout: number
  rebalanceTimeout: number
  assignment: Buffer
  nudge: () => void
  join: Waiter<JoinAnswer> | undefined
  sync: Waiter<Buffer> | undefined
  /** Its sync of the present generation has come. */
  synced: boolean
  session: Timer | undefined
  polling: boolean
}

export interface Group {
  readonly id: string
  state: GroupState
  generation: number
  protocol: string
  leader: string | undefined
  readonly members: Map<string, Member>
  readonly offsets: GroupOffsets
  timer: Timer | undefined
}
