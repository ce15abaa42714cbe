/** Lines of a table, its columns as wide as they need to be. `align` has `l` or `r` for each column. */
export function table(rows: readonly (readonly string[])[], align: string): string[] {
  const width = (at: number): number => Math.max(...rows.map((row) => row[at]?.length ?? 0))
  const widths = [...align].map((_, at) => width(at))
  const fit = (cell: string, at: number): string =>
    align[at] === 'r' ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)
  return rows.map((row) => row.map(fit).join('  ').trimEnd())
}
