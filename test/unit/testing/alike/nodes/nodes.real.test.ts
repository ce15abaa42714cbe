import { afterAll, beforeAll, expect, it } from 'vitest'
import { startBroker, type Broker } from '../../../../helpers/broker'
import { describeWithOwnBrokers } from '../../../../helpers/broker-shared'
import type { Traces } from '../../../../helpers/recording'
import { onRealNodes } from './on-real'
import { record, recorded } from './recorded'
import { nodesStories } from './stories'

const recording = process.env.RECORD === '1'
/** kafkajs itself has races (a rejoin inside a fetch, a batch that was queued before a pause): one run of three must do it. */
const AGAIN = { retry: 2 }

describeWithOwnBrokers('kafkajs on three real nodes does what was recorded', () => {
  const traces: Traces = {}
  let broker: Broker

  beforeAll(async () => {
    broker = await startBroker({ nodes: 3 })
  })

  it.each(Object.entries(nodesStories))('%s', AGAIN, async (name, story) => {
    const trace = await onRealNodes(story, broker)
    traces[name] = trace
    if (!recording) expect(trace).toEqual(recorded()[name])
  })

  afterAll(async () => {
    await broker.stop()
    if (recording) record(traces)
  })
})
