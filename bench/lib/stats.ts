/** The value at `share` (0 to 1) of sorted values: the smallest that at least so many are not above. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? NaN
}

export const sort = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b)

export function median(values: readonly number[]): number {
  const sorted = sort(values)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? (sorted[middle] ?? NaN) : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2
}
