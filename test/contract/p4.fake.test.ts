import { forgedPromises } from './p4-forged'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P4: on the fake broker', fakeStage, forgedPromises)
