/**
 * The way of a request from a client to the broker and back.
 *
 * sent -> (one macrotask) -> refused: the broker is down, or a fault says so
 *                         -> held -> released -> on its way again
 *                         -> done at the broker -> answered
 *                         -> waiting at the broker (long poll, join) -> answered
 * A request that is held or that waits is parked for the clock, all others are busy until their answer is there.
 * One that is held longer than its time-out is given up by the client, and still reaches the broker when released,
 * as it does on a slow network. When the broker goes down, what is held or waits breaks with the connection.
 *
 * Must never happen: a request done twice, answered twice, or done after the connection it was held on has broken.
 */
import type { InnerClock } from './clock'
import {
  KafkaJSConnectionClosedError,
  KafkaJSConnectionError,
  KafkaJSRequestTimeoutError,
  protocolError,
} from './errors'
import { Faults, type Fault, type FaultError, type RequestAbout } from './faults'
import { GroupCoordinator } from './group-coordinator'
import { addressOf, FIRST, HOST, Nodes, portOf, type Placement } from './nodes'
import { TopicStore } from './topics'
import { TransactionCoordinator } from './transaction-coordinator'
import type { FakeWork } from './work'

export interface Request extends RequestAbout {
  readonly api: string
  /** Names it in the clock's report of what is busy. */
  readonly label: string
  readonly timeout?: number
  /** The node that it goes to. */
  readonly node?: number
  /** Whose it is: the client, and the connection that it goes over (requests of one connection do not overtake). */
  readonly client?: object
  readonly connection?: object
}

/** What breaks together: all of a node, or all of a client. */
export type Line = Pick<Request, 'node' | 'client'>

/**
 * The way of one request under `explore`: how long it takes to the broker, and its answer back. Without it each takes
 * one macrotask there and none back.
 */
export interface Trip {
  there(): Promise<void>
  /** The broker has done it, or has refused. */
  done(error?: unknown): void
  back(): Promise<void>
  /** Its connection broke. */
  cut(): void
  /** The client has its answer, or has given it up. */
  end(error?: unknown): void
}

export type Pace = (request: Request, work: FakeWork) => Trip

/** A long poll that waits at the broker. */
export interface StandingPoll extends Line {
  wake(): void
  /** Its connection broke: nobody waits for its answer any more. */
  cut(): void
}

export const connectionClosed = (node = FIRST): KafkaJSConnectionClosedError =>
  new KafkaJSConnectionClosedError(HOST, portOf(node))

export const connectionRefused = (node = FIRST): KafkaJSConnectionError =>
  new KafkaJSConnectionError(
    `Connection error: connect ECONNREFUSED ${addressOf(node)}`,
    addressOf(node),
    'ECONNREFUSED',
  )

/** Partitions of the topic in which Kafka keeps what groups commit; each group belongs to one of them. */
const HOMES = 50
/** When a broker first looks for what it may throw away, and how often (`log.retention.check.interval.ms`), in ms. */
const FIRST_LOOK = 30_000
const CLEAN_EVERY = 300_000

export class FakeBroker {
  readonly topics: TopicStore
  readonly coordinator: GroupCoordinator
  readonly transactions: TransactionCoordinator
  readonly faults: Faults
  /** Set by `explore` alone. */
  pace: Pace | undefined
  readonly nodes: Nodes
  private readonly homes: Placement[]
  private readonly lines = new Map<() => void, Line>()
  private readonly polls = new Set<StandingPoll>()
  private readonly clients = new Map<() => void, Line>()
  private readonly strangers = new Set<object>()

  constructor(
    readonly clock: InnerClock,
    brokers = 1,
    cleanEvery = CLEAN_EVERY,
  ) {
    this.nodes = new Nodes(brokers)
    // Kafka's first look comes soon after its start, the others in their turn.
    const looks = { first: clock.now() + Math.min(FIRST_LOOK, cleanEvery), every: cleanEvery }
    this.topics = new TopicStore(this.nodes, () => clock.now(), looks)
    this.homes = Array.from({ length: HOMES }, (_, i) => this.nodes.place(FIRST + (i % brokers), brokers))
    this.coordinator = new GroupCoordinator(clock, this.topics)
    this.faults = new Faults((kind) => {
      if (kind === 'fetch') this.wakePolls()
    })
    this.transactions = new TransactionCoordinator(clock, this.topics, this.coordinator, this.faults)
  }

  /** A node goes down; without a number, all of them at once. */
  goDown(node?: number): void {
    const going = (node === undefined ? this.nodes.all() : [node]).filter((one) => this.nodes.isUp(one))
    if (going.length === 0) return
    const before = this.homes.map(({ leader }) => leader)
    this.coordinator.stop((group) => going.includes(this.coordinatorOf(group)))
    this.nodes.goDown(going, this.placements())
    this.rehome(before)
    this.breakLines((line) => going.includes(line.node ?? FIRST))
  }

  comeUp(node?: number): void {
    const coming = (node === undefined ? this.nodes.all() : [node]).filter((one) => !this.nodes.isUp(one))
    if (coming.length === 0) return
    const before = this.homes.map(({ leader }) => leader)
    this.nodes.comeUp(coming, this.placements())
    this.rehome(before, coming)
    this.topics.placed()
  }

  /** The node that coordinates a group; -1 while none can. */
  coordinatorOf(group: string): number {
    return this.homes[homeOf(group)]?.leader ?? FIRST
  }

  /** Another node coordinates the group from now on, and all others that Kafka keeps beside it. */
  moveCoordinator(group: string, node: number): void {
    const home = this.homes[homeOf(group)]
    if (home === undefined || home.leader === node) return
    const before = this.homes.map(({ leader }) => leader)
    home.leader = node
    this.coordinator.stop((one) => homeOf(one) === homeOf(group))
    this.rehome(before)
  }

  checkCoordinator(group: string, node: number): void {
    if (this.coordinatorOf(group) !== node) throw protocolError('NOT_COORDINATOR_FOR_GROUP')
  }

  private placements(): Placement[] {
    return [...this.homes, ...this.topics.placements()]
  }

  /** Groups whose node is another one than before, or is back, are taken up there from what is on disk. */
  private rehome(before: readonly number[], back: readonly number[] = []): void {
    const moved = (group: string): boolean => this.coordinatorOf(group) !== before[homeOf(group)]
    const isBack = (group: string): boolean => back.includes(this.coordinatorOf(group))
    this.coordinator.restart(
      (group) => this.nodes.isUp(this.coordinatorOf(group)) && (moved(group) || isBack(group)),
      moved,
    )
  }

  /** The client cannot reach the broker any more, as a process that has died: its sessions run out. */
  cutOff(client: object): void {
    this.strangers.add(client)
    this.breakLines((line) => line.client === client)
  }

  reconnect(client: object): void {
    this.strangers.delete(client)
  }

  isCutOff(client: object): boolean {
    return this.strangers.has(client)
  }

  reaches({ node = FIRST, client }: Line): boolean {
    return this.nodes.isUp(node) && (client === undefined || !this.strangers.has(client))
  }

  private breakLines(of: (line: Line) => boolean): void {
    for (const poll of [...this.polls]) if (of(poll)) poll.cut()
    for (const [cut, line] of [...this.lines]) if (of(line)) cut()
    for (const [lost, line] of [...this.clients]) if (of(line)) lost()
  }

  /** A client's connection: told when it breaks, also while nothing is under way on it. */
  onBreak(lost: () => void, line: Line): () => void {
    this.clients.set(lost, line)
    return () => void this.clients.delete(lost)
  }

  onPoll(poll: StandingPoll): () => void {
    this.polls.add(poll)
    return () => void this.polls.delete(poll)
  }

  /** Ends every long poll that stands: it could miss what a test has just arranged. */
  wakePolls(): void {
    for (const poll of [...this.polls]) poll.wake()
  }

  errorOf(error: FaultError, node = FIRST): Error {
    if (typeof error !== 'string') return error
    if (error === 'CONNECTION_CLOSED') return connectionClosed(node)
    if (error === 'CONNECTION_REFUSED') return connectionRefused(node)
    return protocolError(error)
  }

  /**
   * Sends a request; `act` does it at the broker, and answers with a promise where it has to wait there. With
   * `partly`, a refusal is handed to `act`, which refuses only the part of the request that it is about.
   */
  async request<T>(request: Request, act: Act<T>, partly = false): Promise<T> {
    const work = this.clock.track(() => request.label)
    try {
      if (this.pace !== undefined) return await this.paced(this.pace(request, work), request, act, partly, work)
      await this.clock.turn()
      return await this.arrived(request, act, partly, work)
    } finally {
      work.done()
    }
  }

  private async arrived<T>(request: Request, act: Act<T>, partly: boolean, work: FakeWork): Promise<T> {
    if (!this.reaches(request)) throw connectionClosed(request.node)
    const fault = this.faults.take(request)
    if (fault?.do === 'fail' && !partly) throw this.errorOf(fault.error, request.node)
    const answer = fault?.do === 'hold' ? this.held(request, act, fault) : act(fault)
    const result = answer instanceof Promise ? await this.waiting(request, answer, work) : answer
    if (fault?.do === 'drop') throw connectionClosed(request.node)
    return result
  }

  /**
   * With a way of its own, there and back. What is on the way breaks with its connection; what the client has given up
   * still reaches the broker.
   */
  private paced<T>(trip: Trip, request: Request, act: Act<T>, partly: boolean, work: FakeWork): Promise<T> {
    let broken = false
    const journey = async (): Promise<T> => {
      await trip.there()
      if (broken) throw connectionClosed(request.node)
      try {
        const result = await this.arrived(request, act, partly, work)
        trip.done()
        return result
      } catch (e) {
        trip.done(e)
        throw e
      } finally {
        await trip.back()
      }
    }
    const sentAt = this.clock.now()
    return new Promise<T>((resolve, reject) => {
      let over = false
      const end = (settle: () => void, error?: unknown): void => {
        if (over) return
        over = true
        timer?.cancel()
        this.lines.delete(cut)
        trip.end(error)
        settle()
      }
      const refuse = (error: Error): void => end(() => reject(error), error)
      const cut = (): void => {
        broken = true
        trip.cut()
        refuse(connectionClosed(request.node))
      }
      const giveUp = (): void =>
        refuse(
          new KafkaJSRequestTimeoutError(
            request.api,
            addressOf(request.node ?? FIRST),
            sentAt,
            this.clock.now() - sentAt,
          ),
        )
      const limited = request.timeout !== undefined && request.timeout !== Infinity
      const timer = limited ? this.clock.after(request.timeout, giveUp) : undefined
      this.lines.set(cut, request)
      journey().then((value) => end(() => resolve(value)), refuse)
    })
  }

  /** On its way until released; or done, and its answer on its way. */
  private async held<T>(request: Request, act: Act<T>, fault: Fault & { do: 'hold' }): Promise<T> {
    let broken = false
    const cut = (): void => void (broken = true)
    this.lines.set(cut, request)
    fault.onCaught()
    try {
      const early = fault.what === 'answer' ? { answer: await act(undefined) } : undefined
      const refusal = await fault.released
      if (broken) throw connectionClosed(request.node)
      if (refusal !== undefined) throw this.errorOf(refusal, request.node)
      return early === undefined ? await act(undefined) : early.answer
    } finally {
      this.lines.delete(cut)
    }
  }

  /** Parked until the answer is there, the connection breaks or the client gives the request up. */
  private waiting<T>(request: Request, answer: Promise<T>, work: FakeWork): Promise<T> {
    const unpark = work.park()
    const sentAt = this.clock.now()
    return new Promise<T>((resolve, reject) => {
      const end = (settle: () => void): void => {
        timer?.cancel()
        this.lines.delete(cut)
        unpark()
        settle()
      }
      const cut = (): void => end(() => reject(connectionClosed(request.node)))
      const giveUp = (): void => {
        const pending = this.clock.now() - sentAt
        end(() =>
          reject(new KafkaJSRequestTimeoutError(request.api, addressOf(request.node ?? FIRST), sentAt, pending)),
        )
      }
      const limited = request.timeout !== undefined && request.timeout !== Infinity
      const timer = limited ? this.clock.after(request.timeout, giveUp) : undefined
      this.lines.set(cut, request)
      // Each client hears of it in a macrotask of its own, as over sockets of their own: what one does at once after a
      // sync is done before the next hears of it.
      answer.then(
        (value) => this.clock.soon(() => end(() => resolve(value))),
        (error: Error) => this.clock.soon(() => end(() => reject(error))),
      )
    })
  }
}

/** As Kafka has it: Java's hash of the name. */
function homeOf(group: string): number {
  let hash = 0
  for (let i = 0; i < group.length; i++) hash = (Math.imul(31, hash) + group.charCodeAt(i)) | 0
  return (hash & 0x7fffffff) % HOMES
}

type Act<T> = (fault: Fault | undefined) => T | Promise<T>
