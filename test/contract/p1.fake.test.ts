import { frontierPromises } from './p1-frontier'
import { publishPromises } from './p1-publish'
import { describeOn } from './promises'
import { remadePromises } from './p1-remade'
import { fakeStage } from './stage-fake'

describeOn('P1 on the fake broker: copies', fakeStage, publishPromises)
describeOn('P1 on the fake broker: offsets', fakeStage, frontierPromises)
describeOn('P1 on the fake broker: topics made anew', fakeStage, remadePromises)
