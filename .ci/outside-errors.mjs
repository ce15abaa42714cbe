// A vitest reporter beside the JSON one, which leaves out what fails outside of any test (an unhandled rejection, a worker that
// dies, a set-up that throws): writes it to the file that OUTSIDE_ERRORS names.
import { appendFileSync } from 'node:fs'

export default class OutsideErrors {
  onTestRunEnd(_modules, unhandledErrors) {
    for (const error of unhandledErrors) {
      const file = error?.VITEST_TEST_PATH ?? 'no file'
      const test = error?.VITEST_TEST_NAME ?? ''
      const text = String(error?.stack ?? error?.message ?? error)
      appendFileSync(process.env.OUTSIDE_ERRORS, `${JSON.stringify({ file, test, text })}\n`)
    }
  }
}
