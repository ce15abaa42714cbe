/**
 * What `explore` does to a cluster by seed. Each injected fault has a number, so that a run can be told again without
 * some of them: every draw from the seed is made whether or not the fault is then left out.
 */
import type { Random } from '../ports'
import type { FakeBroker } from './broker'
import type { BrokerControls } from './broker-controls'
import type { InnerClock } from './clock'
import type { Trace } from './explore-trace'
import type { FaultError, RequestFilter, RequestKind } from './faults'

/** Errors that a request of each kind may meet in an ordinary bad hour. */
const ERRORS = {
  publish: ['NOT_ENOUGH_REPLICAS', 'NOT_LEADER_FOR_PARTITION', 'REQUEST_TIMED_OUT', 'CONNECTION_CLOSED'],
  commit: ['NOT_COORDINATOR_FOR_GROUP', 'GROUP_LOAD_IN_PROGRESS', 'CONNECTION_CLOSED'],
  fetch: ['CONNECTION_CLOSED', 'NOT_LEADER_FOR_PARTITION'],
  join: ['CONNECTION_CLOSED', 'NOT_COORDINATOR_FOR_GROUP', 'GROUP_LOAD_IN_PROGRESS'],
  sync: ['CONNECTION_CLOSED', 'REBALANCE_IN_PROGRESS'],
  heartbeat: ['CONNECTION_CLOSED', 'REBALANCE_IN_PROGRESS', 'GROUP_COORDINATOR_NOT_AVAILABLE'],
  leave: ['CONNECTION_CLOSED'],
  metadata: ['CONNECTION_CLOSED', 'LEADER_NOT_AVAILABLE'],
  offsets: ['CONNECTION_CLOSED', 'GROUP_LOAD_IN_PROGRESS'],
  positions: ['CONNECTION_CLOSED', 'NOT_LEADER_FOR_PARTITION'],
} as const satisfies Partial<Record<RequestKind, readonly FaultError[]>>

/** Those of transactions; met only by who has any, so they are disturbed only where they are asked for. */
const TRANSACTION_ERRORS = {
  coordinator: ['GROUP_COORDINATOR_NOT_AVAILABLE', 'CONNECTION_CLOSED'],
  initProducer: ['CONCURRENT_TRANSACTIONS', 'NOT_COORDINATOR_FOR_GROUP', 'GROUP_LOAD_IN_PROGRESS', 'CONNECTION_CLOSED'],
  addPartitions: ['CONCURRENT_TRANSACTIONS', 'NOT_COORDINATOR_FOR_GROUP', 'CONNECTION_CLOSED'],
  addOffsets: ['CONCURRENT_TRANSACTIONS', 'NOT_COORDINATOR_FOR_GROUP', 'INVALID_PRODUCER_EPOCH', 'CONNECTION_CLOSED'],
  txnOffsets: ['NOT_COORDINATOR_FOR_GROUP', 'GROUP_LOAD_IN_PROGRESS', 'CONNECTION_CLOSED'],
  endTransaction: ['NOT_COORDINATOR_FOR_GROUP', 'INVALID_PRODUCER_EPOCH', 'CONNECTION_CLOSED'],
} as const satisfies Partial<Record<RequestKind, readonly FaultError[]>>

/** Kinds of requests that `explore` knows errors for. */
export type ExploredKind = keyof typeof ERRORS | keyof typeof TRANSACTION_ERRORS
/** What `disturb` picks from unless told. */
export const EXPLORED_KINDS = Object.keys(ERRORS) as ExploredKind[]
export const TRANSACTION_KINDS = Object.keys(TRANSACTION_ERRORS) as ExploredKind[]
const ALL_ERRORS: Record<ExploredKind, readonly FaultError[]> = { ...ERRORS, ...TRANSACTION_ERRORS }

export const DISTURBANCES = ['hold', 'fail', 'drop', 'rebalance', 'crash', 'expire', 'outage'] as const
/** `outage`: the whole broker is gone for a while. */
export type Disturbance = (typeof DISTURBANCES)[number]

export interface ExploreFaults {
  /** Holds the next request of the kind (by chance its answer) for up to `longest` virtual ms; 3,000 by default. */
  hold(kind: RequestKind, where?: RequestFilter, longest?: number): void
  /** The next request of the kind fails: with the given error, or one that suits it. */
  fail(kind: ExploredKind, where?: RequestFilter, error?: FaultError): void
  /** The broker does what the next request of the kind asks, and the answer is lost. */
  drop(kind: RequestKind, where?: RequestFilter): void
  /** The group, or any, rebalances though its members stay. */
  rebalance(groupId?: string): void
  /** A consumer dies, of the group or of any; kafkajs (or who runs it) may start it again. */
  crash(groupId?: string): void
  /** The coordinator drops a member, of the group or of any. */
  expire(groupId?: string): void
  /** The broker is gone for up to `longest` virtual ms; 3,000 by default. */
  outage(longest?: number): void
  /** One of these (of all, unless told), at one of these kinds of request. */
  disturb(options?: { of?: readonly Disturbance[]; kinds?: readonly ExploredKind[]; groupId?: string }): void
  /** Any fault of your own: named, numbered, and left out when a run is told again without it. */
  inject(name: string, act: () => void): void
  /** Takes back every fault that has met nothing yet, lets go what is held, and brings the broker back. */
  calm(): void
}

export interface FaultTools {
  readonly random: Random
  readonly clock: InnerClock
  readonly broker: FakeBroker
  readonly controls: BrokerControls
  readonly trace: Trace
  readonly without: ReadonlySet<number>
}

export function createExploreFaults(tools: FaultTools): ExploreFaults & { readonly injected: () => number } {
  const { random, clock, broker, controls, trace, without } = tools
  const open = new Set<() => void>()
  let injected = 0

  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const upTo = (most: number): number => 1 + Math.floor(random() * most)
  const label = (where: RequestFilter): string => {
    const of = Object.entries(where).map(([name, value]) => `${name} ${value}`)
    return of.length > 0 ? ` of ${of.join(', ')}` : ''
  }

  function inject(name: string, act: () => void): void {
    const number = injected++
    if (without.has(number)) return
    trace.add({ what: 'fault', text: `fault ${number}: ${name}` })
    act()
  }

  /** Ends by itself after so long, or when all is to be calm. */
  function forAWhile(ms: number, end: () => void): void {
    const over = (): void => {
      if (!open.delete(over)) return
      timer.cancel()
      end()
    }
    open.add(over)
    const timer = clock.detached(() => clock.after(ms, over))
  }

  function memberOf(groupId: string | undefined): string | undefined {
    const groups = groupId === undefined ? broker.coordinator.names() : [groupId]
    const members = groups.flatMap((group) => broker.coordinator.view(group).members.map(({ memberId }) => memberId))
    // Drawn even where there is none, so that the next draw is the same.
    return pick([...members, ...(members.length === 0 ? [undefined] : [])])
  }

  const faults: ExploreFaults = {
    inject,
    hold(kind, where = {}, longest = 3000) {
      const what = pick(['request', 'answer'] as const)
      const ms = upTo(longest)
      inject(`hold the ${what} of the next ${kind}${label(where)} for ${ms} ms`, () => {
        const held = controls.next(kind, where).hold(what)
        const release = (): void => held.release()
        open.add(release)
        void held.caught.then(() => {
          if (open.delete(release)) forAWhile(ms, release)
        })
      })
    },
    fail(kind, where = {}, error = pick<FaultError>(ALL_ERRORS[kind])) {
      inject(`fail the next ${kind}${label(where)}: ${String(error)}`, () => controls.next(kind, where).fail(error))
    },
    drop(kind, where = {}) {
      inject(`lose the answer of the next ${kind}${label(where)}`, () => controls.next(kind, where).drop())
    },
    rebalance(groupId) {
      const group = groupId ?? pick(broker.coordinator.names())
      inject(`rebalance ${group}`, () => {
        if (group !== undefined) broker.coordinator.rebalance(group)
      })
    },
    crash(groupId) {
      const member = memberOf(groupId)
      inject(`crash ${member ?? 'nobody'}`, () => {
        if (member !== undefined) whereItIs(() => controls.crash(member))
      })
    },
    expire(groupId) {
      const member = memberOf(groupId)
      inject(`expire the session of ${member ?? 'nobody'}`, () => {
        if (member !== undefined) whereItIs(() => controls.expireSession(member))
      })
    },
    outage(longest = 3000) {
      const ms = upTo(longest)
      inject(`the broker is gone for ${ms} ms`, () => {
        controls.down()
        forAWhile(ms, () => controls.up())
      })
    },
    disturb({ of = DISTURBANCES, kinds = EXPLORED_KINDS, groupId } = {}) {
      const what = pick(of)
      const kind = pick(kinds)
      const where = groupId === undefined ? {} : { group: groupId }
      if (what === 'hold' || what === 'drop') faults[what](kind, where)
      else if (what === 'fail') faults.fail(kind, where)
      else if (what === 'outage') faults.outage()
      else faults[what](groupId)
    },
    calm() {
      broker.faults.clear()
      for (const end of [...open]) end()
      open.clear()
      controls.up()
    },
  }
  return { ...faults, injected: () => injected }
}

/** A member that the coordinator still knows may be nobody's any more. */
function whereItIs(act: () => void): void {
  try {
    act()
  } catch {
    // Gone already: there is nothing to do to it.
  }
}
