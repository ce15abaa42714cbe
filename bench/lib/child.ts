/** One system of one suite, once, in a process of its own: no system warms up, or burdens, another. */
import { fetchSettings } from './kafka'
import { loadSuite, type RunContext } from './suite'

const [name = '', system = '', context = '{}'] = process.argv.slice(2)
const suite = await loadSuite(name)
const measurement = await suite.run(system, JSON.parse(context) as RunContext)
process.send?.({ fetch: fetchSettings(), ...measurement }, () => process.exit(0))
