/**
 * What must work under every test runner, with its fake timers on or off: a consumer with two tiers and a dead letter
 * topic on the fake broker, and handlers that fail, wait for virtual time, do real I/O, or hang. Each runner gives the
 * package as it has loaded it: `testing` makes the broker, `helpers` (the other build, where there are two) look at it.
 */
const assert = require('node:assert/strict')
const http = require('node:http')

const MINUTE = 60_000

exports.story = async function story({ retryline, testing, helpers = testing }) {
  const { createResilientConsumer, NonRetryableError, RetryableError, silentLogger } = retryline
  const { attempt, expectDeadLettered, expectNothingDeadLettered, record, runToEnd } = helpers
  const kafka = testing.createFakeKafka({ topics: { orders: 2 }, stallAfter: 200 })
  const startedAt = kafka.clock.now()
  const server = http.createServer((_, response) => response.end('fine'))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()

  const seen = []
  const handler = async ({ message }, ctx) => {
    const key = String(message.key)
    seen.push([key, ctx.attempt, kafka.clock.now() - startedAt])
    if (key === 'bad') throw new NonRetryableError('no such customer')
    if (key === 'down') throw new RetryableError('the bank is down')
    if (key === 'sleeps') await kafka.clock.sleep('20s')
    if (key === 'fetches') assert.equal(await get(port), 'fine')
    if (key === 'hangs' && ctx.attempt === 1) await new Promise(() => {})
  }
  const options = { groupId: 'billing', topic: 'orders', schedule: ['1m', '10m'], handlerTimeout: '30s', handler }
  const consumer = createResilientConsumer({ kafka, ...options, topicSetup: 'create', logger: silentLogger })
  await consumer.start()
  expectNothingDeadLettered(kafka)
  const produce = (key, partition) => kafka.produce('orders', record({ key, value: { key }, partition }))
  for (const key of ['bad', 'down', 'sleeps', 'fetches']) produce(key, 0)

  const { elapsedMs, retried, deadLettered } = await runToEnd(kafka)
  assert.ok(elapsedMs >= 11 * MINUTE && elapsedMs < 12 * MINUTE, `${elapsedMs} ms`)
  assert.deepEqual(seen, [
    ['bad', 1, 0],
    ['down', 1, 0],
    ['sleeps', 1, 0],
    ['fetches', 1, 20_000],
    ['down', 2, MINUTE],
    ['down', 3, 11 * MINUTE],
  ])
  assert.deepEqual(
    retried.map(({ delay }) => delay),
    ['1m', '10m'],
  )
  assert.deepEqual(deadLettered.map(({ key, reason }) => `${key}: ${reason}`).sort(), [
    'bad: non-retryable',
    'down: exhausted',
  ])
  expectDeadLettered(kafka, { key: 'down', value: { key: 'down' }, attempts: 3, error: /bank/ })
  assert.throws(() => expectDeadLettered(kafka, { key: 'nobody' }), { code: 'ERR_ASSERTION', message: /orders\.dlq/ })

  // Stuck for real: after `stallAfter` real ms its time-out fires, and the next attempt is fine.
  produce('hangs', 1)
  await runToEnd(kafka)
  assert.deepEqual(
    seen.slice(6).map(([key, number]) => [key, number]),
    [
      ['hangs', 1],
      ['hangs', 2],
    ],
  )
  await consumer.stop()
  server.close()

  const alone = await attempt(handler, record({ key: 'down', value: '' }), { ...options, attempt: 2 })
  assert.deepEqual([alone.outcome, alone.tier], ['retry', '10m'])
}

/** Says that fake timers are on: else a test of them would show nothing. `tick(ms)` moves the fake ones. */
exports.withFakeTimers = async function withFakeTimers(tick, story) {
  let fired = 0
  setTimeout(() => fired++, 1)
  setImmediate(() => fired++)
  const frozen = Date.now()
  await story()
  assert.equal(Date.now(), frozen)
  assert.equal(fired, 0)
  tick(10)
  assert.equal(fired, 2)
}

function get(port) {
  return new Promise((resolve, reject) => {
    const request = http.get({ port, host: '127.0.0.1', agent: false }, (response) => {
      let text = ''
      response.on('data', (chunk) => (text += chunk)).on('end', () => resolve(text))
    })
    request.on('error', reject)
  })
}
