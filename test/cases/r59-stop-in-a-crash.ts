/**
 * R59: a stop during a crash.
 * Given a consumer whose kafkajs consumer dies, of an error after which kafkajs starts again by itself or of one after
 * which it does not.
 * When `stop()` is called inside the event that tells of the crash, while the restart is waited for, or inside the event
 * of the join after it.
 * Then it stays stopped: no restart, no member, no handler call, no request; the next consumer handles everything.
 */
import { expect, it } from 'vitest'
import type { StopReport } from '../../src'
import { faultyClient } from '../contract/faulty-client'
import { crashing, lastingFault, passingFault } from '../contract/p12-crashing'
import type { Given } from '../contract/promises'
import { expectGone, expectRestHandled } from './stopped'

const RECORDS = Array.from({ length: 5 }, (_, n) => `r${n}`)
type Moment = 'in the event' | 'in the wait' | 'in the join'

const CASES: readonly { moment: Moment; name: string; fault: () => Error }[] = [
  { moment: 'in the event', name: 'starts again after', fault: passingFault },
  { moment: 'in the event', name: 'does not start again after', fault: lastingFault },
  { moment: 'in the wait', name: 'does not start again after', fault: lastingFault },
  { moment: 'in the join', name: 'starts again after', fault: passingFault },
]

export function r59(given: Given): void {
  const during = <T>(work: Promise<T>): Promise<T> => given.stage().during(work)

  it.each(CASES)('R59 P9: $moment of a crash that kafkajs $name', async ({ fault, moment }) => {
    const scene = await given.scene({ schedule: ['200ms'] })
    const witness = faultyClient(given.stage().client())
    const { client, crashNext } = crashing(witness)
    const { trace } = witness.faults
    const { consumer, hooks } = scene.member(undefined, { kafka: client })
    await during(consumer.start())
    let stopping: Promise<StopReport> | undefined
    const stop = (): void => void (stopping ??= consumer.stop())
    if (moment === 'in the event') consumer.on('crashed', stop)
    if (moment === 'in the join') consumer.on('restarted', stop)
    crashNext(fault(), 100)
    await scene.produce(RECORDS)
    if (moment === 'in the wait') {
      await given.stage().until(() => hooks.counts.crashed > 0, 'the crash')
      await during(given.stage().takes(100))
      stop()
    } else await given.stage().until(() => stopping !== undefined, 'the moment')
    expect(await during(stopping!)).toEqual({ abandoned: [], finished: true })
    const { crashed } = hooks.counts
    const requests = trace.length
    expect(consumer.health().status).toBe('stopped')
    await expectGone(scene)
    // Past the time of any restart that may have been on its way.
    await during(given.stage().takes(700))
    await expectRestHandled(scene, 0, 0, RECORDS)
    expect(hooks.counts.crashed).toBe(crashed)
    expect(trace.slice(requests).map(({ name }) => name)).toEqual([])
  })
}
