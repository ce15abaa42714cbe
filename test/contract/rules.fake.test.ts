import { describeOn } from './promises'
import { seamRules } from './rules-seam'
import { fakeStage } from './stage-fake'

describeOn('rules 1 to 20 at the seam: on the fake broker', fakeStage, seamRules)
