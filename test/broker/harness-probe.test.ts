import { expect, it } from 'vitest'
import { describeWithBroker } from '../helpers/broker-shared'

describeWithBroker('the broker of this run', (broker) => {
  it('has an address', () => {
    expect(broker.brokers[0]).toMatch(/:\d+$/)
  })
})
