/** The inside of a fake broker, for the helpers of the test kit. Not public. */
import { RetrylineError } from '../errors'
import type { FakeBroker } from './broker'
import type { InnerClock } from './clock'
import type { LiveConsumer } from './fake-consumer'
import { show } from './show'

export interface Inside {
  readonly clock: InnerClock
  readonly broker: FakeBroker
  /** All that were made, the stopped ones too, in order. */
  readonly consumers: readonly LiveConsumer[]
  /** What `createFakeKafka` was told about polls. */
  readonly slowPolls: boolean
}

/** A registered symbol, so that the helpers of one build know a fake broker of the other. */
const INSIDE: unique symbol = Symbol.for('retryline.testing.inside') as never

export function withInside<T extends object>(kafka: T, inside: Inside): T {
  return Object.defineProperty(kafka, INSIDE, { value: inside })
}

/** `who` asks (`runToEnd()`). Throws RETRYLINE_TESTING for anything but a fake broker. */
export function insideOf(kafka: unknown, who: string): Inside {
  const inside = (kafka as { [INSIDE]?: Inside } | null | undefined)?.[INSIDE]
  if (inside !== undefined) return inside
  throw new RetrylineError(
    'RETRYLINE_TESTING',
    `${who}: the first argument is ${show(kafka)}; give the fake broker that createFakeKafka() returned`,
  )
}
