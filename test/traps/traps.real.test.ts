import { afterAll, expect, it } from 'vitest'
import { describeWithBroker } from '../helpers/broker-shared'
import type { Traces } from '../helpers/recording'
import { onReal } from '../unit/testing/alike/on-real'
import { record, recorded, stories } from './stories'

const recording = process.env.RECORD === '1'
/** kafkajs itself has races (a rejoin inside a fetch, a batch that was queued before a pause): one run of three must do it. */
const AGAIN = { retry: 2 }

describeWithBroker('kafkajs on a real broker has the faults that were recorded', (broker) => {
  const traces: Traces = {}

  it.each(Object.entries(stories))('%s', AGAIN, async (name, story) => {
    const trace = await onReal(story, broker.brokers)
    traces[name] = trace
    if (!recording) expect(trace).toEqual(recorded()[name])
  })

  afterAll(() => {
    if (recording) record(traces)
  })
})
