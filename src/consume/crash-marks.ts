/**
 * What a commit says of deaths, as text in front of what is done beyond it (see done-beyond.ts):
 *
 *   `o<n>-<who>.`            open: whoever wrote it is at work, and may have started any of the n records from the offset on.
 *   `c<n>-<who>.`            the n records from the offset on are suspicious since the death of `who`: handle them with care.
 *   `s<distance>-<deaths>-<who>-<who>.`
 *                            a suspect, so many offsets behind the committed one, that was not running; who has died under it.
 *   `x<distance>-<deaths>-<who>.`
 *                            a suspect that may be running: should its process die, that is a death more.
 *
 * No open mark is a clean end. `who` is chance of four characters, by which a writer knows its own; each may be missing.
 *
 * Must never happen: more than MARKS_ROOM characters; a text that is read as something that was not written.
 */

export interface Suspect {
  readonly offset: bigint
  /** Processes that died, as it seems, while it may have been running. */
  readonly deaths: number
  /** The last of these processes, at most MAX_BY; the newest stands last. */
  readonly by: readonly string[]
  readonly running: boolean
}

export interface CrashMarks {
  readonly open: { readonly records: number; readonly by: string } | undefined
  /** Records that are still to be handled with care after a death of before. */
  readonly careful: number
  /** Whose death that was. */
  readonly carefulBy: string | undefined
  readonly suspects: readonly Suspect[]
}

export const NO_MARKS: CrashMarks = { open: undefined, careful: 0, carefulBy: undefined, suspects: [] }

/** More are forgotten, those with the fewest deaths first: each death adds one at most, and it was one of many. */
const MAX_SUSPECTS = 8
export const MAX_BY = 4
/** No mark of ours reaches further; more is not ours. */
const MAX_REACH = 2 ** 40
const MAX_DEATHS = 1_000_000
/** Marks never take more characters than this: what is done beyond the commit leaves them so many. */
export const MARKS_ROOM = 400

const FRONT =
  /^(?:o(\d{1,13})-([\w-]{4})\.)?(?:c(\d{1,13})(?:-([\w-]{4}))?\.)?((?:[sx]\d{1,13}-\d{1,7}(?:-[\w-]{4}){0,4}\.){0,8})/
const ONE_SUSPECT = /([sx])(\d+)-(\d+)((?:-[\w-]{4})*)\./g
const ONE_WHO = /-([\w-]{4})/g

export function packMarks(base: bigint, { open, careful, carefulBy, suspects }: CrashMarks): string {
  let text = open === undefined ? '' : `o${Math.min(open.records, MAX_REACH)}-${open.by}.`
  if (careful > 0) text += `c${Math.min(careful, MAX_REACH)}${carefulBy === undefined ? '' : `-${carefulBy}`}.`
  const kept = suspects.length <= MAX_SUSPECTS ? suspects : worst(suspects)
  for (const { offset, deaths, by, running } of kept) {
    const distance = offset - base
    if (distance < 0n || distance > BigInt(MAX_REACH)) continue
    const who = by.slice(-MAX_BY).map((one) => `-${one}`)
    text += `${running ? 'x' : 's'}${distance}-${Math.min(deaths, MAX_DEATHS)}${who.join('')}.`
  }
  return text
}

function worst(suspects: readonly Suspect[]): readonly Suspect[] {
  return [...suspects]
    .sort((a, b) => Number(b.running) - Number(a.running) || b.deaths - a.deaths)
    .slice(0, MAX_SUSPECTS)
}

/** Takes the marks off the front of the text; undefined where what stands there can be none of ours. */
export function unpackMarks(base: bigint, text: string): { marks: CrashMarks; rest: string } | undefined {
  const [front, opened, by, careful, carefulBy, list] = FRONT.exec(text)!
  if (front === '') return { marks: NO_MARKS, rest: text }
  if (Number(opened ?? 0) > MAX_REACH || Number(careful ?? 0) > MAX_REACH) return undefined
  const suspects: Suspect[] = []
  for (const [, kind, distance, deaths, who] of list!.matchAll(ONE_SUSPECT)) {
    if (Number(distance) > MAX_REACH || Number(deaths) > MAX_DEATHS) return undefined
    suspects.push({
      offset: base + BigInt(distance!),
      deaths: Number(deaths),
      by: [...who!.matchAll(ONE_WHO)].map(([, one]) => one!),
      running: kind === 'x',
    })
  }
  return {
    marks: {
      open: opened === undefined ? undefined : { records: Number(opened), by: by! },
      careful: Number(careful ?? 0),
      carefulBy,
      suspects,
    },
    rest: text.slice(front.length),
  }
}
