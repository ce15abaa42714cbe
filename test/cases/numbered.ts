/** Records `0`, `1`, … of keys `k0`, `k1`, …: of as many keys as there are records, unless told. */
export const numbered = (count: number, keys = count): { key: string; value: string }[] =>
  Array.from({ length: count }, (_, n) => ({ key: `k${n % keys}`, value: String(n) }))
