import { hostileCodePromises } from './hostile-code'
import { hostileJudgePromises } from './hostile-judges'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('hostile code: on the fake broker', fakeStage, (given) => {
  hostileCodePromises(given)
  hostileJudgePromises(given)
})
