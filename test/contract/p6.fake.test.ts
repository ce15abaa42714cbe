import { orderPromises } from './p6-order'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P6: on the fake broker', fakeStage, orderPromises)
