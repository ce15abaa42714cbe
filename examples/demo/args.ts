import { parseArgs } from 'node:util'

export type Args = { help: true } | { help: false; broker: 'fake' | 'local' | string[] }

export const USAGE = `npm run demo                           on an in-memory broker with a virtual clock; needs nothing
npm run demo -- --broker host:port     on your broker (several: host:port,host:port), with short delays
npm run demo -- --broker local         on a broker that it starts (needs java and mvn) and stops

On a real broker its topics and groups have names of their own, and are deleted at the end.`

const ADDRESS = /^(\[[\da-f:.]+\]|[\w.-]+):(\d{1,5})$/i

/** Throws an Error whose message says what is wrong with the arguments. */
export function parse(argv: readonly string[]): Args {
  const { values } = parseArgs({
    args: [...argv],
    options: { broker: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help === true) return { help: true }
  if (values.broker === undefined) return { help: false, broker: 'fake' }
  if (values.broker === 'local') return { help: false, broker: 'local' }
  const brokers = values.broker.split(',')
  for (const broker of brokers) {
    const port = Number(ADDRESS.exec(broker)?.[2] ?? 0)
    if (port < 1 || port > 65_535) throw new Error(`--broker is '${values.broker}'; give host:port, or local`)
  }
  return { help: false, broker: brokers }
}
