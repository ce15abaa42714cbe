import { frontierPromises } from './p1-frontier'
import { publishPromises } from './p1-publish'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P1 on the fake broker: copies', fakeStage, publishPromises)
describeOn('P1 on the fake broker: offsets', fakeStage, frontierPromises)
