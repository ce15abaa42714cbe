// Prints "<passed> <failed>" of a vitest run, from its JSON report, exit code and errors outside of tests; appends to a file
// what failed, and what passed only at a second try, so that the end of the log says so too.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

const [report, status, notes, outside] = process.argv.slice(2)
let passed = 0
let failed = 0
try {
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
  // A file that cannot even be loaded has no test to count; one whose set-up fails has none that failed.
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.every((test) => test.status !== 'failed'),
  )
  passed = numPassedTests
  failed = numFailedTests + broken.length
  for (const { name, message } of broken) tell('failed', name, '', message)
  for (const { name, assertionResults } of testResults) {
    for (const { status, fullName, failureMessages } of assertionResults) {
      if (status === 'failed') tell('failed', name, fullName, failureMessages.at(-1))
      else if (status === 'passed' && failureMessages.length > 0) tell('again ', name, fullName, failureMessages[0])
    }
  }
} catch {
  // No report: the run did not get so far, and its exit code speaks for it.
}
if (existsSync(outside)) {
  for (const line of readFileSync(outside, 'utf8').split('\n').filter(Boolean)) {
    const { file, test, text } = JSON.parse(line)
    tell('outside of a test', file, test, text)
  }
}
// What fails outside of tests (an unhandled rejection, a required broker that is missing, no test at all) is in no count.
if (failed === 0 && (status !== '0' || passed === 0)) {
  failed = 1
  tell('failed', report, '', `the run ended with code ${status}, ${passed} tests passed and none failed`)
}
console.log(`${passed} ${failed}`)

function tell(what, file, name, message) {
  const text = String(message).split('\n').slice(0, 12).join('\n          ')
  appendFileSync(notes, `  ${what}  ${file.replace(`${process.cwd()}/`, '')}: ${name}\n          ${text}\n`)
}
