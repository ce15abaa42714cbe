const UNITS: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1000,
  KB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
}

/** Bytes from a number or from text with a unit; undefined for anything else. */
export function parseSize(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value > 0 ? value : undefined
  if (typeof value !== 'string') return undefined
  const [, digits, unit] = /^([1-9][0-9]{0,8}) ?([kKMG]i?B|B)$/.exec(value) ?? []
  const size = unit === undefined ? undefined : UNITS[unit]
  return digits === undefined || size === undefined ? undefined : Number(digits) * size
}
