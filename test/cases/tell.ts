/** Tells stories to a stage: the same to the fake broker and to a real one. A story makes tests whose titles begin with its number. */
import { describeOn, type Suite } from '../contract/promises'
import { fakeStage } from '../contract/stage-fake'
import { realStage } from '../contract/stage-real'
import { describeWithBroker } from '../helpers/broker-shared'

const all =
  (stories: readonly Suite[]): Suite =>
  (given) => {
    for (const story of stories) story(given)
  }

export function onFake(section: string, ...stories: readonly Suite[]): void {
  describeOn(`${section}: on the fake broker`, fakeStage, all(stories))
}

export function onReal(section: string, ...stories: readonly Suite[]): void {
  describeWithBroker(section, ({ brokers }) => describeOn('on a real broker', () => realStage(brokers), all(stories)))
}
