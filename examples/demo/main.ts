/**
 * npm run demo: 329 real webhooks, a handler that relays them to a server which fails in every way a server can, and
 * the ledger at the end. `--help` tells the rest. Exit code 0 where the ledger balances, 1 where it does not, 2 where
 * the arguments are wrong.
 */
import { parse, USAGE, type Args } from './args'
import { play } from './demo'
import { createReport } from './report'
import { fakeStage, realStage, type Stage } from './stage'

async function stageFor(broker: 'fake' | 'local' | string[]): Promise<{ stage: Stage; close(): Promise<void> }> {
  if (broker === 'fake') return { stage: fakeStage(), close: async () => undefined }
  if (broker !== 'local') return { stage: realStage(broker), close: async () => undefined }
  const { startBroker } = await import('../../test/helpers/broker')
  console.log('Starting a broker …')
  const local = await startBroker()
  return { stage: realStage(local.brokers), close: () => local.stop() }
}

async function main(): Promise<number> {
  let args: Args
  try {
    args = parse(process.argv.slice(2))
  } catch (error) {
    console.error(`demo: ${error instanceof Error ? error.message : String(error)}`)
    return 2
  }
  if (args.help) {
    console.log(USAGE)
    return 0
  }
  try {
    const { stage, close } = await stageFor(args.broker)
    try {
      return (await play(stage, createReport())) ? 0 : 1
    } finally {
      await close()
    }
  } catch (error) {
    console.error(`demo: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  }
}

process.exitCode = await main()
