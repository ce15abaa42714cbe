import { outagePromises } from './outage'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('outages on the fake broker', fakeStage, outagePromises)
