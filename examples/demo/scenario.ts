/**
 * What the server does to each webhook, and what must become of it. Chosen by the webhook's id, so every run is the
 * same, and the report can say whether each record ended as it should.
 */

export type Answer =
  | { readonly kind: 'status'; readonly status: number; readonly retryAfterSeconds?: number }
  /** The connection is cut without an answer. */
  | { readonly kind: 'reset' }
  /** The connection stays open and nothing ever comes. */
  | { readonly kind: 'hang' }

export type Ending =
  | { readonly kind: 'delivered'; readonly attempt: number }
  | { readonly kind: 'dead'; readonly reason: string; readonly attempt: number }

export interface Scenario {
  readonly title: string
  /** Of a hundred webhooks, about so many. */
  readonly share: number
  readonly ending: Ending
  /** The answer to the first, second, … try. */
  answer(tries: number): Answer
}

export interface Terms {
  readonly maxAttempts: number
  /** What a busy server asks for: longer than the first delay of the schedule, so that a later tier is the right one. */
  readonly retryAfterSeconds: number
}

export function scenarios({ maxAttempts, retryAfterSeconds }: Terms): Scenario[] {
  /** Fails at the first so many tries. */
  const passes = (title: string, share: number, failures: number, how: Answer): Scenario => ({
    title,
    share,
    ending: { kind: 'delivered', attempt: failures + 1 },
    answer: (tries) => (tries <= failures ? how : { kind: 'status', status: 200 }),
  })
  const stays = (title: string, share: number, how: Answer, reason: string, attempt = maxAttempts): Scenario => ({
    title,
    share,
    ending: { kind: 'dead', reason, attempt },
    answer: () => how,
  })

  const down: Answer = { kind: 'status', status: 503 }
  const busy: Answer = { kind: 'status', status: 429, retryAfterSeconds }
  const cut: Answer = { kind: 'reset' }
  const silent: Answer = { kind: 'hang' }
  return [
    passes('200', 60, 0, down),
    passes('503 once, then 200', 8, 1, down),
    passes('503 twice, then 200', 5, 2, down),
    passes('503 three times, then 200', 3, 3, down),
    stays('503 for ever', 3, down, 'exhausted'),
    passes(`429 once, Retry-After: ${retryAfterSeconds}, then 200`, 6, 1, busy),
    passes('cuts the connection once, then 200', 5, 1, cut),
    passes('cuts the connection twice, then 200', 3, 2, cut),
    passes('nothing once (time-out), then 200', 1, 1, silent),
    stays('nothing, ever', 1, silent, 'timeout'),
    stays('400', 5, { kind: 'status', status: 400 }, 'non-retryable', 1),
  ]
}

export function scenarioOf(id: string, all: readonly Scenario[]): Scenario {
  let place = parseInt(id.slice(0, 8), 16) % 100
  for (const scenario of all) {
    place -= scenario.share
    if (place < 0) return scenario
  }
  throw new Error('the shares of the scenarios do not make a hundred')
}
