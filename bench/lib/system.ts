/**
 * What a suite asks of a system, whichever it is: to run one handler over one topic, with one retry delay and a dead
 * letter topic. The systems are in `peers/`.
 */
import type { Kafka } from 'kafkajs'
import type { RunContext } from './suite'

/** `again`: fails, and is worth a retry; `bad`: fails, and no retry helps. Each system throws its own kind of error for it. */
export type Outcome = 'done' | 'again' | 'bad'

export interface Job {
  kafka: Kafka
  brokers: string[]
  topic: string
  groupId: string
  /** Between two attempts, ms; whole seconds, since not every peer knows less. */
  delay: number
  /** The first attempt is 1. `due` is ms since the epoch, on retries only: before that time a record is early. */
  handle(value: Buffer | null, attempt: number, due: number | undefined): Outcome | Promise<Outcome>
  /** What happens while the system consumes: it is called once all its consumers have joined, and it ends the run. */
  during(): Promise<void>
}

/** What a system has read and written, so that it can be looked at afterwards. */
export interface Trace {
  reads: { topic: string; groupId: string }[]
  deadLetters?: string
}

/** Runs the job from its start to a clean stop. */
export type System = (job: Job, context: RunContext) => Promise<Trace>

/** How often a record may be retried: enough for every suite, the same for all. */
export const RETRIES = 2
