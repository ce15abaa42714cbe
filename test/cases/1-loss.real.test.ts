import { r03 } from './r03-partition-counts'
import { onReal } from './tell'

onReal('1 loss and corruption', r03)
