import { crashInnocentPromises } from './crash-innocents'
import { crashLoopPromises } from './crash-loop'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P1 on the fake broker: crash loops', fakeStage, crashLoopPromises)
describeOn('P1 on the fake broker: crash-loop and the innocent', fakeStage, crashInnocentPromises)
