/** The order of events. */
// In your own code: from 'retryline'.
import { consoleLogger, createResilientConsumer, type EachMessage, type HandlerContext } from '../../src/index'
import { createJournal, type Wave } from './journal'
import { createTopic, positions, produce, readAll } from './kafka-side'
import { audit } from './ledger'
import { deliveryOf, webhooks } from './payloads'
import type { Report } from './report'
import { scenarioOf, scenarios } from './scenario'
import { startServer } from './server'
import type { Stage } from './stage'

/** Whether the ledger balances. */
export async function play(stage: Stage, report: Report): Promise<boolean> {
  const { kafka, topic, groupId, schedule, retryAfterSeconds, handlerTimeout } = stage
  const all = webhooks()
  const planned = scenarios({ maxAttempts: schedule.length + 1, retryAfterSeconds })
  const byId = new Map(all.map(({ id }) => [id, scenarioOf(id, planned)]))
  const scenario = (id: string) => byId.get(id) ?? planned[0]!
  let began = stage.now()
  const onWave = (wave: Wave): void => report.wave(wave.from - began, wave)
  const journal = createJournal({ now: stage.now, produced: all.length, schedule, onWave })

  // An everyday eachMessage handler. All that is special to the demo is that it keeps a journal.
  async function relay({ message }: EachMessage, ctx: HandlerContext): Promise<void> {
    journal.started(ctx)
    const id = deliveryOf(message.headers) ?? ''
    const headers = { 'content-type': 'application/json', 'x-github-delivery': id }
    const response = await fetch(server.url, { method: 'POST', body: message.value, headers, signal: ctx.signal })
    await response.arrayBuffer()
    if (!response.ok) {
      const { status, headers } = response
      throw Object.assign(new Error(`the server answered ${status}`), { status, headers })
    }
    journal.delivered(id, ctx)
  }

  const consumer = createResilientConsumer({
    kafka,
    groupId,
    topic,
    schedule: [...schedule],
    handler: relay,
    handlerTimeout,
    ordering: 'unordered',
    topicSetup: 'create',
    hooks: journal.hooks,
    logger: consoleLogger({ level: 'error' }),
  })
  const retryTopics = schedule.map((delay) => `${topic}.retry.${delay}`)
  const reads = new Map([
    [groupId, [topic]],
    ...schedule.map((delay, at) => [`${groupId}.retry.${delay}`, [retryTopics[at]!]] as const),
  ])
  const reader = `${groupId}-dead-letters`

  await createTopic(kafka, topic)
  const server = await startServer((id, tries) => scenario(id).answer(tries))
  try {
    report.opening({ stage, url: server.url })
    await consumer.start()
    began = stage.now()
    report.produced(all)
    await produce(kafka, topic, all)
    await stage.carry(journal.isDone)
    const took = stage.now() - began
    await consumer.stop()

    const deadLetters = await readAll(kafka, `${topic}.dlq`, reader)
    const { deliveries, retries } = journal
    const { accepted } = server
    const books = {
      webhooks: all,
      scenario,
      deliveries,
      accepted,
      deadLetters,
      retries,
      positions: await positions(kafka, reads),
    }
    const checks = audit(books)
    report.outcome(planned, books)
    report.deadLetters(`${topic}.dlq`, deadLetters)
    report.ledger(checks, stage.virtual ? took : undefined)
    return checks.every(({ faults }) => faults.length === 0)
  } finally {
    // The server first: it ends the calls that a consumer would wait for.
    await server.close()
    await consumer.stop({ timeout: '1s' })
    const topics = [topic, ...retryTopics, `${topic}.dlq`]
    await stage
      .tidy({ topics, groups: [...reads.keys(), reader] })
      .catch((error: unknown) => report.untidy(topics, error))
  }
}
