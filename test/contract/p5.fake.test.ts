import { othersPromises } from './p5-others'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P5: on the fake broker', fakeStage, othersPromises)
