/** A real broker in the foreground, for trying things: Ctrl-C ends it and removes its data. */
import { parseArgs } from 'node:util'
import { startBroker } from '../test/helpers/broker'

const { values } = parseArgs({ options: { nodes: { type: 'string', default: '1' }, version: { type: 'string' } } })
if (values.nodes !== '1' && values.nodes !== '3') {
  console.error(`--nodes is 1 or 3, not ${values.nodes}`)
  process.exit(2)
}

const broker = await startBroker({
  nodes: values.nodes === '3' ? 3 : 1,
  ...(values.version === undefined ? {} : { version: values.version }),
})
console.log(`Kafka ${broker.version} runs; Ctrl-C ends it and removes its data.`)
console.log(`KAFKA_BROKERS=${broker.brokers.join()}`)

const alive = setInterval(() => undefined, 60_000)
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    clearInterval(alive)
    void broker.stop()
  })
}
