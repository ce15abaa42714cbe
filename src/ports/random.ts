/** A number in [0, 1). An argument, so that jitter and back-off can be tested. */
export type Random = () => number

export const systemRandom: Random = () => Math.random()
