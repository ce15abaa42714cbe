import { describeStorm } from './promises'

describeStorm(1)
