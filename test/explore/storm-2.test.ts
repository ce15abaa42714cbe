import { describeStorm } from './promises'

describeStorm(2)
