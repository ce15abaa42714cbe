import { clockOf, processOf, randomOf, systemClock, type Driver, type Logger } from '../../ports'
import { createKafkajsAdmin } from './admin'
import { explainConnect } from './connect-error'
import { createKafkajsConsumer } from './consumer'
import { createDenials } from './denied'
import { errorType } from './errors'
import { ownMakers, withGuardedConnections } from './framing'
import type { KafkaJsLike } from './kafkajs-like'
import { explainedAdmin } from './explained-admin'
import { createKafkajsPublisher } from './publisher'
import { createKafkajsTransactor } from './transactor'

export { STICKY_ASSIGNER } from './assigner'
export type { KafkaJsLike } from './kafkajs-like'

const FENCED = new Set(['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED'])
const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'])

/** The driver for a kafkajs client (`^2.2.0`), or for anything of the same shape. */
export function kafkajsDriver(given: KafkaJsLike, logger: Logger): Driver {
  const clock = clockOf(given)
  const kafka = withGuardedConnections(given)
  warnOfOwnMakers(given, logger)
  const denials = createDenials(kafka)
  const tools = { clock: clock ?? systemClock, logger }
  return {
    client: 'kafkajs',
    clock,
    random: randomOf(given),
    process: processOf(given),
    consumer(options, listener) {
      // One look-up client for each consumer, used only while it leads a group whose members read different topics.
      const lookUp = async (topics: readonly string[]): Promise<ReadonlyMap<string, number>> => {
        const admin = explainedAdmin(createKafkajsAdmin(kafka), denials)
        await admin.connect()
        try {
          return await admin.partitions(topics)
        } finally {
          await admin.disconnect()
        }
      }
      return createKafkajsConsumer(kafka, options, listener, lookUp, tools, denials)
    },
    publisher: () => createKafkajsPublisher(kafka, tools, denials),
    transactor: (transactionalId, offset) => createKafkajsTransactor(kafka, transactionalId, tools, denials, offset),
    admin: () => explainedAdmin(createKafkajsAdmin(kafka), denials),
    explainConnect,
    isTooLarge: (error) => TOO_LARGE.has(errorType(error) ?? ''),
    isFenced: (error) => FENCED.has(errorType(error) ?? ''),
  }
}

const warned = new WeakSet<object>()

/** Once for each client, however many consumers it serves. */
function warnOfOwnMakers(given: KafkaJsLike, logger: Logger): void {
  const own = ownMakers(given)
  if (own.length === 0 || warned.has(given)) return
  warned.add(given)
  logger.warn(
    `the kafkajs client has a ${own.map((name) => `${name}()`).join(', ')} of its own, so its connections are left as kafkajs ` +
      'makes them: one that is cut within an answer can hang or end the process, some outlive a stop, and fetches are ' +
      'decoded more slowly. Give a client as kafkajs makes it, or change the method on Kafka.prototype',
    { methods: own },
  )
}
