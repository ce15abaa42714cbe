/**
 * What a worker can be told to do to itself, over IPC. A fault sends one with `crew.tell(slot, { do: 'name', … })`; the worker
 * writes down that it got it, and does it.
 */
import type { ResilientConsumer } from '../../src'
import type { Ledger } from './ledger'

export interface Command {
  readonly do: string
  readonly [argument: string]: unknown
}

export interface Inside {
  readonly consumer: ResilientConsumer
  readonly ledger: Ledger
}

export const COMMANDS: { readonly [name: string]: (inside: Inside, command: Command) => void } = {
  /** Writes the consumer's health into the ledger, for a person to read. */
  health: ({ consumer, ledger }) =>
    ledger.write({ what: 'note', text: `health: ${JSON.stringify(consumer.health())}` }),
}

export function obey(inside: Inside, command: Command): void {
  inside.ledger.write({ what: 'note', text: `told: ${JSON.stringify(command)}` })
  const known = COMMANDS[command.do]
  if (!known) throw new Error(`a worker knows no command '${command.do}': it knows ${Object.keys(COMMANDS).join(', ')}`)
  known(inside, command)
}
