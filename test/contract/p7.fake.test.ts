import { beyondPromises } from './p7-beyond'
import { positionPromises } from './p7-positions'
import { rebalancePromises } from './p7-rebalance'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P7 on the fake broker: members', fakeStage, rebalancePromises)
describeOn('P7 on the fake broker: positions', fakeStage, positionPromises)
describeOn('P7 on the fake broker: beyond the offset', fakeStage, beyondPromises)
