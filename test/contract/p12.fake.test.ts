import { silentPromises } from './p12-silent'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P12 on the fake broker', fakeStage, silentPromises)
