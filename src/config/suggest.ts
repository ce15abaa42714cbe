/** The known name that was probably meant: at most two slips away. */
export function suggest(name: string, known: readonly string[]): string | undefined {
  let best: { name: string; slips: number } | undefined
  for (const candidate of known) {
    const slips = distance(name.toLowerCase(), candidate.toLowerCase())
    // Short names are within two slips of anything.
    if (slips <= Math.min(2, Math.floor(candidate.length / 3)) && (!best || slips < best.slips)) {
      best = { name: candidate, slips }
    }
  }
  return best?.name
}

/** How many letters must be added, dropped or changed to get from one to the other. */
function distance(from: string, to: string): number {
  if (Math.abs(from.length - to.length) > 2) return Infinity
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const change = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? Infinity
}
