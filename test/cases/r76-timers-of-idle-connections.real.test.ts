/**
 * R76: timers of idle connections.
 * Given a process with a consumer and four waits, so five kafkajs consumers and a producer, and another with the same
 * number of plain ones: kafkajs 2.2.4 runs a timer about every millisecond for each connection that has ever got an answer.
 * When both have nothing to do.
 * Then ours takes no more of the processor than plain kafkajs does, whose timer it does without: Node has nothing to warn of,
 * where it warns plain kafkajs's user of the negative time that docs/operations.md explains; and the page says what it costs.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { realStage } from '../contract/stage-real'
import { describeWithBroker } from '../helpers/broker-shared'
import type { IdleOptions, IdleReport } from './idle-program'

const run = promisify(execFile)
const PROGRAM = fileURLToPath(new URL('idle-program.ts', import.meta.url))
/** One wakes up every few ms for one reason or another: less than this, in per cent of a core, is no finding. */
const SLACK = 1
/** The first Node that warns. */
const WARNS_FROM = 24

describeWithBroker('8 runtime cost', ({ brokers }) => {
  it('R76: an idle consumer costs what kafkajs costs', async ({ annotate }) => {
    const stage = await realStage(brokers)
    const topic = stage.unique('idle')
    await stage.createTopics({ [topic]: 3 })
    const idle = async (who: IdleOptions['who']): Promise<IdleReport> => {
      const waits = ['1m', '2m', '3m', '4m']
      const options: IdleOptions = {
        brokers,
        topic,
        groupId: stage.unique(who),
        who,
        waits,
        settleMs: 2_000,
        watchMs: 5_000,
      }
      const { stdout } = await run(process.execPath, ['--import', 'tsx', PROGRAM, JSON.stringify(options)])
      return JSON.parse(stdout) as IdleReport
    }
    // Side by side, so that both meet the same machine.
    const [ours, plain] = await Promise.all([idle('ours'), idle('plain')])
    await stage.close()
    const shown = `ours ${ours.cpu.toFixed(1)} %, plain ${plain.cpu.toFixed(1)} % of a core, Node ${ours.node}`
    await annotate(shown)
    expect(plain.cpu, shown).toBeGreaterThan(0)
    expect(ours.cpu, shown).toBeLessThanOrEqual(plain.cpu + SLACK)
    const warns = Number(process.versions.node.split('.')[0]) >= WARNS_FROM
    expect(plain.warnings).toEqual(warns ? ['TimeoutNegativeWarning'] : [])
    expect(ours.warnings).toEqual([])
    const page = readFileSync(resolve(import.meta.dirname, '../../docs/operations.md'), 'utf8').replaceAll('\n', ' ')
    expect(page).toMatch(/TimeoutNegativeWarning[^]*?five idle consumers[^]*?\d % of a core/)
  })
})
