/**
 * R50: an undecodable record that grows.
 * Given values that no decoder takes (random bytes, broken UTF-8, a schema registry's magic byte with an unknown id,
 * half a JSON text), and a handler that decodes inside and throws, or a consumer that decodes by itself.
 * When each fails through its retry and is dead-lettered, and a person replays it, again and again.
 * Then the value on every topic is the same bytes, and nothing grows with the replays but the list of failures, which has
 * a limit: our headers are replaced, and not put into one another.
 */
import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src'
import { HEADER, LIMIT } from '../../src/envelope'
import type { Given } from '../contract/promises'
import { header, type Scene } from '../contract/scene'
import type { StoredRecord } from '../contract/stage'

const VALUES = [
  randomBytes(300),
  Buffer.from([0xc3, 0x28, 0xff, 0xfe]),
  Buffer.concat([Buffer.from([0, 0x7f, 0xff, 0xff, 0xff]), randomBytes(40)]),
  Buffer.from('{"total":'),
]

/** Bytes of key, value and headers, without the list of failures. */
const sizeOf = ({ key, value, headers }: StoredRecord): number =>
  headers
    .filter(([name]) => name !== HEADER.history)
    .reduce((sum, [name, bytes]) => sum + name.length + (bytes?.length ?? 0), (key?.length ?? 0) + (value?.length ?? 0))

/** As a person sends a dead letter back today: as it stands, with the two headers that say so. */
async function replay(scene: Scene, dead: readonly StoredRecord[]): Promise<void> {
  const said = ['x-replayed-from-dlq', 'x-replay-for-group']
  for (const { key, value, headers } of dead) {
    const others = headers.filter(([name]) => !said.includes(name))
    const ours = [
      ['x-replayed-from-dlq', 'true'],
      ['x-replay-for-group', scene.group],
    ] as const
    await scene.stage.produce(scene.topic, 0, [{ key, value, headers: [...others, ...ours] }])
  }
}

export function r50(given: Given): void {
  describe.each([
    { who: 'the handler decodes', options: { unknownErrors: 'dead-letter' }, reasons: /^exhausted$/, calls: 2 },
    { who: 'the consumer decodes', options: { decode: 'json' }, reasons: /^undecodable$/, calls: 0 },
  ])('$who', ({ options, reasons, calls }) => {
    it('R50 P3: the same bytes after many replays, and no larger', async () => {
      const scene = await given.scene({ schedule: ['200ms'] })
      await scene.join(({ payload }) => {
        try {
          JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload.message.value))
        } catch (cause) {
          throw new RetryableError(`undecodable: ${String(payload.message.value)}`, { cause })
        }
      }, options)
      await scene.produce(VALUES.map((value) => ({ key: 'k', value, headers: [['schema', '7']] })))
      const sizes: number[][] = []
      // Far enough, where it costs nothing, for the list of failures to reach its limit.
      const cycles = given.stage().kind === 'real' ? 4 : calls > 0 ? 24 : 40
      const histories: number[] = []
      for (let cycle = 1; cycle <= cycles; cycle++) {
        await scene.untilDead(cycle * VALUES.length)
        await scene.untilDone()
        const dead = (await scene.dead()).slice(-VALUES.length)
        const inOrder = VALUES.map((value) => dead.find((one) => one.value?.equals(value)))
        for (const one of inOrder) {
          expect(one, 'a dead letter with the bytes of the source').toBeDefined()
          expect(header(one!, 'x-failure-reason')).toMatch(reasons)
          expect(header(one!, 'schema')).toBe('7')
          const names = one!.headers.map(([name]) => name)
          expect(names).toEqual([...new Set(names)])
        }
        sizes.push(inOrder.map((one) => sizeOf(one!)))
        histories.push(Math.max(...inOrder.map((one) => header(one!, HEADER.history)!.length)))
        if (cycle < cycles) await replay(scene, dead)
      }
      expect(scene.calls).toHaveLength(cycles * calls * VALUES.length)
      for (const copy of await given.stage().records(scene.retry('200ms'))) {
        expect(VALUES.some((value) => copy.value?.equals(value))).toBe(true)
      }
      // From the first replay on, which says so in headers.
      for (const [i, size] of sizes[1]!.entries()) {
        expect(new Set(sizes.slice(1).map((cycle) => cycle[i])), `bytes of ${i}`).toEqual(new Set([size]))
      }
      expect(Math.max(...histories)).toBeLessThanOrEqual(LIMIT.history)
      if (cycles > 4) expect(histories.at(-1)! - histories.at(-2)!, 'the list is full').toBeLessThan(20)
    })
  })
}
