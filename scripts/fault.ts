/**
 * The fault suite: `npm run test:fault`. A cluster of its own, worker processes, a seeded plan of faults, and a reconciliation.
 * The last line of standard output is JSON; the exit code is 1 where anything was found, 2 where an option is wrong.
 */
import { FAULTS } from '../test/fault/faults'
import { BadOption, parseSuiteOptions, type SuiteOptions } from '../test/fault/options'
import { runSuite } from '../test/fault/run'

let options: SuiteOptions
try {
  options = parseSuiteOptions(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof BadOption)) throw error
  console.error(error.message)
  process.exit(2)
}
if (options.list) {
  for (const { name, about, nodes = [1, 3] } of FAULTS)
    console.log(`${name.padEnd(18)} ${nodes.join(' or ')}  ${about}`)
  process.exit(0)
}

const { minutes, seed, nodes, delivery, ordering } = options
console.log(`seed ${seed}, ${nodes} node(s), ${minutes} min, ${delivery}, ordering ${ordering}`)
const outcome = await runSuite(options, (text) => console.log(text))
const { findings, faults, notBroughtAbout, counts, problems, folder, story } = outcome
for (const problem of problems.slice(0, 20)) console.log(`problem: ${problem}`)
if (problems.length > 20) console.log(`… and ${problems.length - 20} more`)
if (problems.length > 0) console.log(`the story of the first:\n${story}\nevidence: ${folder}`)
const { problems: _, duplicates, unexplained, produced, early, lost, disorder, ...rest } = findings
const { backwardsCommits, longestStallMs, ...more } = rest
console.log(
  JSON.stringify({
    faults,
    faultsNotBroughtAbout: notBroughtAbout,
    records: produced,
    lost,
    duplicates: Object.values(duplicates).reduce((sum, count) => sum + count, 0) + unexplained,
    unexplainedDuplicates: unexplained,
    early,
    disorder,
    backwardsCommits,
    longestStallMs,
    seed,
    nodes,
    delivery,
    ordering,
    minutes,
    ...more,
    ...counts,
    duplicatesBy: duplicates,
    problems: problems.length,
  }),
)
process.exitCode = problems.length > 0 ? 1 : 0
