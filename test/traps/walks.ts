/** Which walks are kept, and what kafkajs did on them on a real broker. */
import { readFileSync, writeFileSync } from 'node:fs'

/** The fake walks all of them; a real broker, which takes its time, the first two, and all of them with RECORD=1. */
export const SEEDS = [1, 2, 3, 4, 7, 11, 14, 17, 20, 24]
export const ON_REAL = 2

const FILE = new URL('./walks.recorded.json', import.meta.url)

export type Walked = Record<string, unknown[]>

export const recordedWalks = (): Walked => JSON.parse(readFileSync(FILE, 'utf8')) as Walked

export function recordWalks(walked: Walked): void {
  writeFileSync(FILE, `${JSON.stringify(walked, null, 1)}\n`)
}
