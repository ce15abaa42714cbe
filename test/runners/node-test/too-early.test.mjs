import assert from 'node:assert/strict'
import { mock, test } from 'node:test'

test('mock timers that were on before the package was loaded are told, and nothing hangs', async () => {
  mock.timers.enable()
  const { createFakeKafka } = await import('retryline/testing')
  assert.throws(() => createFakeKafka(), {
    code: 'RETRYLINE_TESTING',
    message: /import it before mock\.timers\.enable/,
  })
})
