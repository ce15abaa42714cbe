// Prints "<passed> <failed>" of a vitest run, from its JSON report and exit code.
import { readFileSync } from 'node:fs'

const [report, status] = process.argv.slice(2)
let passed = 0
let failed = 0
try {
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
  // A file that cannot even be loaded has no test to count.
  const broken = testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length
  passed = numPassedTests
  failed = numFailedTests + broken
} catch {
  // No report: the run did not get so far, and its exit code speaks for it.
}
// Faults outside of tests (an unhandled rejection, a required broker that is missing, no test at all) show only there.
if (failed === 0 && (status !== '0' || passed === 0)) failed = 1
console.log(`${passed} ${failed}`)
