import { topicPromises } from './p10-topics'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P10 on the fake broker', fakeStage, topicPromises)
