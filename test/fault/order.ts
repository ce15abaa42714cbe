/**
 * The order of first attempts, as the mode promises it: of a partition, or of a key within one, a record is begun only when
 * the one before it has ended. A record that was called more than once counts by its first begin and its first end: what a
 * death repeats is a repetition, never an overtaking.
 */
import { groupBy, laneOf, nameOf, offsetOf, type Call, type Evidence } from './evidence'

export function disorder(evidence: Evidence, calls: readonly Call[]): string[] {
  const { ordering = 'partition', main = [] } = evidence
  if (ordering === 'unordered') return []
  const keys = new Map(main.map(({ place, key }) => [place, key]))
  const firsts = calls.filter(({ begin }) => begin.attempt === 1)
  const records = [...groupBy(firsts, ({ begin }) => begin.place)].map(([place, group]) => ({
    place,
    begunAt: Math.min(...group.map(({ begin }) => begin.at)),
    endedAt: Math.min(...group.map(({ end }) => end?.at ?? Infinity)),
  }))
  const bound = ordering === 'partition' ? records : records.filter(({ place }) => keys.get(place) != null)
  const chains = groupBy(bound, ({ place }) =>
    ordering === 'partition' ? laneOf(place) : `${laneOf(place)} key ${keys.get(place)}`,
  )
  return [...chains].flatMap(([chain, list]) => {
    list.sort((a, b) => Number(offsetOf(a.place) - offsetOf(b.place)))
    return list.flatMap(({ place, begunAt }, i) => {
      const before = list[i - 1]
      if (before === undefined || begunAt >= before.endedAt) return []
      return [`out of order on ${chain}: ${nameOf({ place, attempt: 1 })} began before ${before.place} had ended`]
    })
  })
}
