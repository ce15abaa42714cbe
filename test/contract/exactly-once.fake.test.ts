import { exactlyOncePromises } from './exactly-once'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('exactly once on the fake broker', fakeStage, exactlyOncePromises)
