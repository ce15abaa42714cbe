import { stopPromises } from './p9-stop'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P9 on the fake broker', fakeStage, stopPromises)
