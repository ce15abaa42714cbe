import { bytesPromises } from './p3-bytes'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P3: on the fake broker', fakeStage, bytesPromises)
