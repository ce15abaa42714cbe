/** For `--import`, before the worker itself. */
import { install } from './wall-clock'

install()
