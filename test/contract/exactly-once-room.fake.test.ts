import { exactlyOnceRoomPromises } from './exactly-once-room'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('exactly once, no room in the metadata, on the fake broker', fakeStage, exactlyOnceRoomPromises)
