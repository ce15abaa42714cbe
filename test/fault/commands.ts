/**
 * What a worker can be told to do to itself, over IPC. A fault sends one with `crew.tell(slot, { do: 'name', … })`; the worker
 * writes down that it got it, and does it.
 */
import { createRequire } from 'node:module'
import type { ResilientConsumer } from '../../src'
import type { Freeze, Step } from './freeze'
import type { Ledger } from './ledger'
import { setSkew } from './wall-clock'

export interface Command {
  readonly do: string
  readonly [argument: string]: unknown
}

export interface Inside {
  /** What the handler asks before it works. */
  readonly spells: Spells
  readonly consumer: ResilientConsumer
  readonly ledger: Ledger
}

export interface Spells {
  /** So many first attempts are still to be held for ever. */
  hang: number
  readonly freeze: Freeze
}

// Node finds only some of kafkajs's names for an import.
const { CompressionCodecs: codecs } = createRequire(import.meta.url)('kafkajs') as {
  CompressionCodecs: Record<number, () => unknown>
}
const GZIP = 1
const gzip = codecs[GZIP]!

export const COMMANDS: { readonly [name: string]: (inside: Inside, command: Command) => void } = {
  /** Writes the consumer's health into the ledger, for a person to read. */
  health: ({ consumer, ledger }) =>
    ledger.write({ what: 'note', text: `health: ${JSON.stringify(consumer.health())}` }),
  /** Nothing runs in the process for `ms`: no heartbeat, no timer, no handler. It waits, and burns no core. */
  block: (_, { ms }) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms as number),
  /** The next `calls` first attempts never settle; 0 lets off those that have not come. */
  hang({ spells }, { calls }) {
    spells.hang = calls as number
  },
  /** The process stops itself (SIGSTOP) with its next transaction open, in front of `before`; SIGCONT is somebody else's. */
  freeze({ spells }, { before }) {
    spells.freeze.before = before as Step
  },
  /** From now on the wall clock of the process is `ms` ahead of the true time, or behind it where negative. */
  skew({ ledger }, { ms }) {
    setSkew(ms as number)
    ledger.write({ what: 'note', text: `the clock is set, to ${new Date().toISOString()}` })
  },
  /** Takes gzip from kafkajs, or gives it back: its error is that of a codec that nobody has registered. */
  codec: (_, { known }) => {
    const none = (): never => {
      throw Object.assign(new Error('GZIP compression not implemented'), { name: 'KafkaJSNotImplemented' })
    }
    codecs[GZIP] = known === true ? gzip : none
  },
}

export function obey(inside: Inside, command: Command): void {
  inside.ledger.write({ what: 'note', text: `told: ${JSON.stringify(command)}` })
  const known = COMMANDS[command.do]
  if (!known) throw new Error(`a worker knows no command '${command.do}': it knows ${Object.keys(COMMANDS).join(', ')}`)
  known(inside, command)
}
