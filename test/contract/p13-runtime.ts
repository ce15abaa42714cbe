import { describe, expect, it } from 'vitest'
import { isRetrylineError, type RetrylineError } from '../../src'
import type { Given } from './promises'
import { header } from './scene'

/** P13, the half about what is met at run time: one clear error or a defined outcome, no record lost, nothing left. */
export function runtimePromises(given: Given): void {
  const during = <T>(work: Promise<T>): Promise<T> => given.stage().during(work)

  async function refusal(start: Promise<void>): Promise<RetrylineError> {
    const error: unknown = await during(start.then(() => undefined)).catch((caught: unknown) => caught)
    if (isRetrylineError(error)) return error
    throw error ?? new Error('it was not refused')
  }

  describe('P13 bad input: at run time', () => {
    it('two consumers of one group in a process: the second is refused, the first goes on', async () => {
      const scene = await given.scene()
      await scene.join(undefined, { sameGroupInProcess: 'refuse' })
      const second = scene.member(undefined, { sameGroupInProcess: 'refuse' })
      const { code, message } = await refusal(second.consumer.start())
      expect(code).toBe('RETRYLINE_GROUP_IN_USE')
      expect(message).toContain(`groupId: '${scene.group}' is already consumed by this process`)
      expect(message).toContain("sameGroupInProcess: 'allow'")
      expect(second.consumer.health().status).toBe('stopped')
      await scene.produce(['a'])
      await scene.untilDone()
      expect(scene.calls.map(({ member }) => member)).toEqual([0])
      // Once the first has stopped its group is free.
      await scene.members[0]!.stop()
      await scene.join(undefined, { sameGroupInProcess: 'refuse' })
    })

    it('a start twice, and a start after a stop', async () => {
      const scene = await given.scene()
      const { consumer } = await scene.join()
      expect(await refusal(consumer.start())).toMatchObject({
        code: 'RETRYLINE_STATE',
        message: expect.stringContaining('call it once') as string,
      })
      expect(consumer.health().status).toBe('ok')
      await during(consumer.stop())
      expect((await refusal(consumer.start())).message).toContain('make a new consumer')
    })

    it('a stop with a time-out that is none: told, and shutdownTimeout is used', async () => {
      const scene = await given.scene()
      const errors: string[] = []
      const logger = { debug() {}, info() {}, warn() {}, error: (line: string) => void errors.push(line) }
      const { consumer } = await scene.join(undefined, { logger })
      expect(await during(consumer.stop({ timeout: '5 fortnights' as never }))).toMatchObject({ finished: true })
      expect(errors.join()).toMatch(/stop\(\): timeout.*5 fortnights.*shutdownTimeout is used/)
    })

    it('values that cannot be decoded go to the dead letter topic byte by byte, without a handler call', async () => {
      const scene = await given.scene()
      await scene.join(undefined, { decode: 'json' })
      const odd = [
        Buffer.from([0xff, 0xfe, 0]),
        Buffer.from('{"open": '),
        Buffer.from([0, 0, 0, 0, 7, 1]),
        Buffer.alloc(0),
      ]
      await scene.produce([...odd.map((value) => ({ value })), { value: '{"good":true}' }])
      await scene.untilDone()
      const dead = await scene.dead()
      expect(dead.map(({ value }) => value)).toEqual(odd)
      for (const record of dead) expect(header(record, 'x-failure-reason')).toBe('undecodable')
      expect(scene.values()).toEqual(['{"good":true}'])
    })

    it('a decoder that throws something odd, or never answers, is one record’s trouble', async () => {
      const scene = await given.scene()
      const decode = (value: Buffer | null): unknown => {
        if (String(value) === 'odd') throw undefined
        if (String(value) === 'rejects') return Promise.reject(Object.create(null))
        return String(value)
      }
      await scene.join(undefined, { decode })
      await scene.produce(['odd', 'rejects', 'fine'])
      await scene.untilDone()
      expect((await scene.dead()).map(({ value }) => String(value)).sort()).toEqual(['odd', 'rejects'])
      expect(scene.values()).toEqual(['fine'])
    })

    it.each([
      ['no topic', { value: 'x' }],
      ['a topic that is not there', { topic: 'nowhere-at-all', value: 'x' }],
      ['no value', { topic: 'x' }],
      ['something that is no message', 42],
    ])('ctx.send() of %s fails its attempt, and says why', async (_, message) => {
      const scene = await given.scene({ schedule: [] })
      await scene.join(({ ctx }) => ctx.send(message as never))
      await scene.produce(['a'])
      await scene.untilDone()
      const [dead] = await scene.dead()
      expect(header(dead!, 'x-error')).toMatch(/ctx\.send\(\)|topic|value/)
      expect(await scene.stage.ends(scene.topic)).toMatchObject(new Map([[0, { low: 0n, high: 1n }]]))
    })

    it('ctx.send() after the handler has ended throws there, and sends nothing', async () => {
      const scene = await given.scene()
      await scene.join()
      await scene.produce(['a'])
      await scene.untilDone()
      expect(() => scene.calls[0]!.ctx.send({ topic: scene.topic, value: 'late' })).toThrow(/had ended/)
      expect((await scene.stage.ends(scene.topic)).get(0)?.high).toBe(1n)
    })
  })
}
