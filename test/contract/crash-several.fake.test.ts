import { crashSeveralPromises } from './crash-several'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('crash loops of several records on the fake broker', fakeStage, crashSeveralPromises)
