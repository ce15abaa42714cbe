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
import { TopicStore } from './topics'
import type { FakeWork } from './work'

export const HOST = 'fake-broker'
export const PORT = 9092
export const ADDRESS = `${HOST}:${PORT}`

export interface Request extends RequestAbout {
  readonly api: string
  /** Names it in the clock's report of what is busy. */
  readonly label: string
  readonly timeout?: number
  /** Whose it is: the client, and the connection that it goes over (requests of one connection do not overtake). */
  readonly client?: object
  readonly connection?: object
}

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
export interface StandingPoll {
  readonly client?: object
  wake(): void
  /** Its connection broke: nobody waits for its answer any more. */
  cut(): void
}

export const connectionClosed = (): KafkaJSConnectionClosedError => new KafkaJSConnectionClosedError(HOST, PORT)

export const connectionRefused = (): KafkaJSConnectionError =>
  new KafkaJSConnectionError(`Connection error: connect ECONNREFUSED ${ADDRESS}`, ADDRESS, 'ECONNREFUSED')

export class FakeBroker {
  readonly topics: TopicStore
  readonly coordinator: GroupCoordinator
  readonly faults: Faults
  /** Set by `explore` alone. */
  pace: Pace | undefined
  private readonly lines = new Map<() => void, object | undefined>()
  private readonly polls = new Set<StandingPoll>()
  private readonly clients = new Map<() => void, object | undefined>()
  private readonly strangers = new Set<object>()
  private isDown = false

  constructor(
    readonly clock: InnerClock,
    brokers = 1,
  ) {
    this.topics = new TopicStore(brokers)
    this.coordinator = new GroupCoordinator(clock, this.topics)
    this.faults = new Faults((kind) => {
      if (kind === 'fetch') this.wakePolls()
    })
  }

  get up(): boolean {
    return !this.isDown
  }

  goDown(): void {
    if (this.isDown) return
    this.isDown = true
    this.coordinator.stop()
    this.breakLines(() => true)
  }

  /** The client cannot reach the broker any more, as a process that has died: its sessions run out. */
  cutOff(client: object): void {
    this.strangers.add(client)
    this.breakLines((one) => one === client)
  }

  reconnect(client: object): void {
    this.strangers.delete(client)
  }

  reaches(client: object | undefined): boolean {
    return !this.isDown && (client === undefined || !this.strangers.has(client))
  }

  private breakLines(of: (client: object | undefined) => boolean): void {
    for (const poll of [...this.polls]) if (of(poll.client)) poll.cut()
    for (const [cut, client] of [...this.lines]) if (of(client)) cut()
    for (const [lost, client] of [...this.clients]) if (of(client)) lost()
  }

  /** A client's connection: told when it breaks, also while nothing is under way on it. */
  onBreak(lost: () => void, client?: object): () => void {
    this.clients.set(lost, client)
    return () => void this.clients.delete(lost)
  }

  comeUp(): void {
    if (!this.isDown) return
    this.isDown = false
    this.coordinator.restart()
  }

  onPoll(poll: StandingPoll): () => void {
    this.polls.add(poll)
    return () => void this.polls.delete(poll)
  }

  /** Ends every long poll that stands: it could miss what a test has just arranged. */
  wakePolls(): void {
    for (const poll of [...this.polls]) poll.wake()
  }

  errorOf(error: FaultError): Error {
    if (typeof error !== 'string') return error
    if (error === 'CONNECTION_CLOSED') return connectionClosed()
    if (error === 'CONNECTION_REFUSED') return connectionRefused()
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
    if (!this.reaches(request.client)) throw connectionClosed()
    const fault = this.faults.take(request)
    if (fault?.do === 'fail' && !partly) throw this.errorOf(fault.error)
    const answer = fault?.do === 'hold' ? this.held(request, act, fault) : act(fault)
    const result = answer instanceof Promise ? await this.waiting(request, answer, work) : answer
    if (fault?.do === 'drop') throw connectionClosed()
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
      if (broken) throw connectionClosed()
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
        refuse(connectionClosed())
      }
      const giveUp = (): void =>
        refuse(new KafkaJSRequestTimeoutError(request.api, ADDRESS, sentAt, this.clock.now() - sentAt))
      const limited = request.timeout !== undefined && request.timeout !== Infinity
      const timer = limited ? this.clock.after(request.timeout, giveUp) : undefined
      this.lines.set(cut, request.client)
      journey().then((value) => end(() => resolve(value)), refuse)
    })
  }

  /** On its way until released; or done, and its answer on its way. */
  private async held<T>(request: Request, act: Act<T>, fault: Fault & { do: 'hold' }): Promise<T> {
    let broken = false
    const cut = (): void => void (broken = true)
    this.lines.set(cut, request.client)
    fault.onCaught()
    try {
      const early = fault.what === 'answer' ? { answer: await act(undefined) } : undefined
      const refusal = await fault.released
      if (broken) throw connectionClosed()
      if (refusal !== undefined) throw this.errorOf(refusal)
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
      const cut = (): void => end(() => reject(connectionClosed()))
      const giveUp = (): void => {
        const pending = this.clock.now() - sentAt
        end(() => reject(new KafkaJSRequestTimeoutError(request.api, ADDRESS, sentAt, pending)))
      }
      const limited = request.timeout !== undefined && request.timeout !== Infinity
      const timer = limited ? this.clock.after(request.timeout, giveUp) : undefined
      this.lines.set(cut, request.client)
      // Each client hears of it in a macrotask of its own, as over sockets of their own: what one does at once after a
      // sync is done before the next hears of it.
      answer.then(
        (value) => this.clock.soon(() => end(() => resolve(value))),
        (error: Error) => this.clock.soon(() => end(() => reject(error))),
      )
    })
  }
}

type Act<T> = (fault: Fault | undefined) => T | Promise<T>
