/** A number in [0, 1). An argument, so that jitter and back-off can be tested. */
export type Random = () => number

export const systemRandom: Random = () => Math.random()

/** Where a fake broker under `explore` keeps chance that comes from a seed: `kafka[RANDOM]`. */
export const RANDOM: unique symbol = Symbol.for('retryline.random') as never

export function randomOf(kafka: unknown): Random | undefined {
  return (kafka as { [RANDOM]?: Random } | null | undefined)?.[RANDOM]
}
