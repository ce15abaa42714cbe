import { duePromises } from './p2-due'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P2: on the fake broker', fakeStage, duePromises)
