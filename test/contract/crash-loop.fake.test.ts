import { crashLoopPromises } from './crash-loop'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P1 on the fake broker: crash loops', fakeStage, crashLoopPromises)
