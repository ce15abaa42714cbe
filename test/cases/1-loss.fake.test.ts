import { r03 } from './r03-partition-counts'
import { onFake } from './tell'

onFake('1 loss and corruption', r03)
