/**
 * What a worker did, written line by line before and after it did it, so that the ledger of a process that is killed is
 * whole up to its death. One file for each process; times are ms since the epoch, of one machine.
 */
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { skew, trueNow } from './wall-clock'

/** Where a record first stood: `topic/partition@offset`. It names the record at every attempt. */
export type Place = string

interface Stamp {
  readonly worker: string
  readonly pid: number
  /** True time. */
  readonly at: number
  /** How much the worker's own clock was ahead of it, where it was, ms. */
  readonly skew?: number
}

export interface Begin extends Stamp {
  readonly what: 'begin'
  readonly place: Place
  readonly attempt: number
  readonly dueAt?: number
  /** Where the copy stood that this call was for. */
  readonly source: Place
}

export interface End extends Stamp {
  readonly what: 'end'
  readonly place: Place
  readonly attempt: number
  readonly source: Place
  readonly outcome: 'ok' | 'failed'
}

/** A failed call has its copy: only now may its offset be committed. */
export interface Routed extends Stamp {
  readonly what: 'routed'
  /** Where the copy stood that the call was for. */
  readonly source: Place
}

/** What happened to the worker: only these explain a record that was handled twice. */
export interface Happening extends Stamp {
  readonly what: 'started' | 'rebalanced' | 'reopened' | 'crashed' | 'commitRefused' | 'stopping' | 'stopped'
  readonly tier?: string
  /** Of a rebalance: how many partitions went away. */
  readonly removed?: number
  /** Of a rebalance, or of a lane that was found to have been another's: `topic/partition` of each that went away. */
  readonly lost?: readonly string[]
  /** Of a rebalance: what was begun anew, at the offset that the broker told after this. */
  readonly gained?: readonly string[]
}

/** Anything the worker was told of by an event, for a person to read. */
export interface Note extends Stamp {
  readonly what: 'note'
  readonly text: string
}

export type Line = Begin | End | Routed | Happening | Note
type Unstamped<L> = L extends Line ? Omit<L, keyof Stamp> : never

export interface Ledger {
  write(line: Unstamped<Line>): void
  close(): void
}

export function openLedger(path: string, worker: string): Ledger {
  const file = openSync(path, 'a')
  return {
    // Synchronous: the line stands before the call that it tells of goes on.
    write(line) {
      const stamp = { worker, pid: process.pid, at: trueNow(), ...(skew() !== 0 && { skew: skew() }) }
      writeSync(file, `${JSON.stringify({ ...line, ...stamp })}\n`)
    },
    close: () => closeSync(file),
  }
}

/**
 * All lines of a ledger that grows, again and again: each call reads only what has come since the one before. A soak has half a
 * million lines, and whoever looks for one of them every second must not read them all. No file, no lines.
 */
export function followLedger(path: string): () => readonly Line[] {
  const lines: Line[] = []
  let read = 0
  return () => {
    if (!existsSync(path)) return lines
    const file = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(fstatSync(file).size - read)
      const whole = bytes.subarray(0, readSync(file, bytes, 0, bytes.length, read)).lastIndexOf('\n') + 1
      read += whole
      for (const line of bytes.toString('utf8', 0, whole).split('\n').slice(0, -1)) lines.push(JSON.parse(line) as Line)
    } finally {
      closeSync(file)
    }
    return lines
  }
}

/** All lines of a ledger; a kill may have cut the last one short, and then it tells of nothing that was done. */
export function readLedger(path: string): Line[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  lines.pop()
  return lines.map((line) => JSON.parse(line) as Line)
}
