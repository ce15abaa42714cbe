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
}

/** A long poll that waits at the broker. */
export interface StandingPoll {
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
  private readonly lines = new Set<() => void>()
  private readonly polls = new Set<StandingPoll>()
  private readonly clients = new Set<() => void>()
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
    for (const poll of [...this.polls]) poll.cut()
    for (const cut of [...this.lines]) cut()
    for (const lost of [...this.clients]) lost()
  }

  /** A client's connection: told when it breaks, also while nothing is under way on it. */
  onBreak(lost: () => void): () => void {
    this.clients.add(lost)
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
      await this.clock.turn()
      if (this.isDown) throw connectionClosed()
      const fault = this.faults.take(request)
      if (fault?.do === 'fail' && !partly) throw this.errorOf(fault.error)
      const answer = fault?.do === 'hold' ? this.held(act, fault) : act(fault)
      const result = answer instanceof Promise ? await this.waiting(request, answer, work) : answer
      if (fault?.do === 'drop') throw connectionClosed()
      return result
    } finally {
      work.done()
    }
  }

  /** On its way until released; or done, and its answer on its way. */
  private async held<T>(act: Act<T>, fault: Fault & { do: 'hold' }): Promise<T> {
    let broken = false
    const cut = (): void => void (broken = true)
    this.lines.add(cut)
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
      this.lines.add(cut)
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
