import { memoryPromises } from './p11-memory'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P11 on the fake broker', fakeStage, memoryPromises)
