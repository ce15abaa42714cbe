import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { memoryHooks, NonRetryableError, RetryableError, type EventType } from '../../src'
import { crashing, lastingFault, passingFault } from './p12-crashing'
import type { Given } from './promises'
import { header, type Scene } from './scene'

interface Line {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly text: string
  readonly event: unknown
}

/** A logger that remembers. */
function linesOf(): {
  lines: Line[]
  logger: Record<Line['level'], (text: string, fields?: { event?: unknown }) => void>
} {
  const lines: Line[] = []
  const at = (level: Line['level']) => (text: string, fields?: { event?: unknown }) =>
    void lines.push({ level, text, event: fields?.event })
  return { lines, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

const cyclic = (): unknown => {
  const one: { self?: unknown } = {}
  one.self = one
  return one
}

/** What a handler may throw, and whether the built-in rules know it to be hopeless. */
const ODD: readonly (readonly [name: string, make: () => unknown])[] = [
  ['a TypeError', () => new TypeError('x is not a function')],
  ['a RangeError', () => new RangeError('too far')],
  ['undefined', () => undefined],
  ['null', () => null],
  ['a string', () => 'just text'],
  ['a number', () => 42],
  ['a frozen error', () => Object.freeze(new Error('frozen'))],
  ['an error of another realm', () => runInNewContext('new TypeError("from elsewhere")') as unknown],
  ['something cyclic', cyclic],
  [
    'an error that is its own cause',
    () => {
      const error = new Error('me')
      error.cause = error
      return error
    },
  ],
  [
    'an object whose every property throws',
    () =>
      new Proxy(
        {},
        {
          get() {
            throw new Error('hands off')
          },
          getPrototypeOf() {
            throw new Error('hands off')
          },
          ownKeys() {
            throw new Error('hands off')
          },
          has() {
            throw new Error('hands off')
          },
        },
      ),
  ],
  [
    'a revoked proxy',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      return proxy
    },
  ],
  ['a function', () => () => undefined],
  ['a symbol', () => Symbol('odd')],
  ['something without a prototype', () => Object.create(null) as unknown],
]

/** P12: every failure is seen in a log line, a hook and an event, and the consumer lives on or says that it does not. */
export function silentPromises(given: Given): void {
  const during = <T>(work: Promise<T>): Promise<T> => given.stage().during(work)

  /** A started member whose every failure is looked for in three places. */
  async function watched(scene: Scene, act: Parameters<Scene['member']>[0], options: Record<string, unknown> = {}) {
    const { lines, logger } = linesOf()
    const hook = memoryHooks()
    const member = scene.member(act, { logger, hooks: hook, ...options })
    const heard = new Set<string>()
    member.consumer.on('all', ({ type }) => void heard.add(type))
    await during(member.consumer.start())
    async function told(type: EventType, level: Line['level'] | undefined, text: RegExp): Promise<void> {
      await given.stage().until(
        () => heard.has(type) && hook.counts[type] > 0,
        () => `${type} is told: heard ${[...heard].join()}`,
      )
      const own = lines.filter(({ event }) => event === type)
      expect(own.map((line) => line.text).join('\n')).toMatch(text)
      if (level !== undefined) expect(own.map((line) => line.level)).toContain(level)
    }
    return { ...member, lines, hook, told }
  }

  describe('P12 no silent failure', () => {
    it('a publish that fails: an error line, a hook, an event, and the partition says it is blocked', async () => {
      const scene = await given.scene({ partitions: 2 })
      const { consumer, faults, told } = await watched(scene, ({ value }) => {
        if (value === 'bad') throw new RetryableError('not now')
      })
      const fault = faults.publish('reject')
      await scene.produce(['bad'])
      await told(
        'publishFailed',
        'error',
        /publishing 1 records to .*retry.* failed, try 1, again in \d+ ms: .*injected/,
      )
      await given.stage().until(() => consumer.health().status === 'degraded', 'the health says so')
      const [lane, other] = consumer.health().groups[0]!.partitions
      expect([lane, other].map((one) => one?.state)).toEqual(expect.arrayContaining(['blocked', 'ok']))
      expect(consumer.health().problems.join()).toMatch(new RegExp(`${scene.topic}/0 waits`))
      fault.stop()
      await scene.untilDone()
      await given.stage().until(() => consumer.health().status === 'ok', 'it is well again')
    })

    it('a commit that is refused', async () => {
      const scene = await given.scene()
      const { faults, told } = await watched(scene, undefined)
      faults.commit('reject', { topic: scene.topic, times: 2 })
      await scene.produce(['a'])
      await told('commitFailed', 'warn', /commit of 1 partitions \(main\) was refused.*injected/)
      await scene.untilDone()
    })

    it.each([
      ['that kafkajs restarts after', passingFault],
      ['that kafkajs does not restart after', lastingFault],
    ])('R42 R43: a crash %s: told, seen in the health, and mended by itself', async (_, makeError) => {
      const scene = await given.scene()
      const { client, crashNext } = crashing(given.stage().client())
      const { consumer, told, hook } = await watched(scene, undefined, { kafka: client })
      const seen = new Set<string>()
      consumer.on('crashed', () => {
        const { status, groups, problems } = consumer.health()
        seen.add(`${status} ${groups[0]?.state} ${groups[0]?.error} ${problems.length}`)
      })
      crashNext(makeError())
      await scene.produce(['a', 'b'])
      await told('crashed', 'error', /the consumer of main crashed, restarting: .*fault/)
      expect([...seen].join()).toMatch(/^degraded crashed .*fault.* 1$/)
      await told('restarted', 'info', /the consumer of main is back/)
      await scene.untilDone()
      expect(consumer.health().status).toBe('ok')
      expect(hook.counts.crashed).toBe(1)
      expect(new Set(scene.values())).toEqual(new Set(['a', 'b']))
    })

    it('a rebalance', async () => {
      const scene = await given.scene({ partitions: 2 })
      const { told, lines } = await watched(scene, undefined)
      const second = await scene.join()
      await given
        .stage()
        .until(
          () => lines.some(({ text }) => /rebalanced \(main\): 1 partitions, 0 new, 1 gone/.test(text)),
          'the loss of a partition is told',
        )
      await told('rebalanced', 'info', /rebalanced \(main\): 2 partitions, 2 new, 0 gone, 0 waiting records dropped/)
      await second.stop()
    })

    it('a classifier that throws: told, and the built-in table decides', async () => {
      const scene = await given.scene()
      const { told } = await watched(
        scene,
        () => {
          throw new TypeError('a bug')
        },
        {
          classify: () => {
            throw new Error('the classifier is broken')
          },
        },
      )
      await scene.produce(['a'])
      await told('problem', 'warn', /classify.*the classifier is broken/)
      await scene.untilDead(1)
      expect(header((await scene.dead())[0]!, 'x-failure-reason')).toBe('non-retryable')
    })

    it('a hook, a listener and a logger that throw: contained, told, and nothing changes', async () => {
      const scene = await given.scene()
      const bad = {
        all() {
          throw new Error('the hook is broken')
        },
        committed: async () => {
          throw new Error('the hook rejects')
        },
      }
      const good = memoryHooks()
      const { lines, logger } = linesOf()
      const { consumer } = scene.member(
        ({ attempt }) => {
          if (attempt === 1) throw new RetryableError('not now')
        },
        {
          hooks: [bad, good],
          logger: {
            ...logger,
            info() {
              throw new Error('the logger is broken')
            },
          },
        },
      )
      consumer.on('attempt', () => {
        throw new Error('the listener is broken')
      })
      await during(consumer.start())
      await scene.produce(['a', 'b'])
      await scene.untilDone()
      expect(scene.values()).toHaveLength(4)
      const problems = good.events('problem').map(({ where, error }) => `${where}: ${error}`)
      for (const what of ['the hook is broken', 'the hook rejects', 'the listener is broken']) {
        expect([...problems, ...lines.map(({ text }) => text)].join('\n')).toContain(what)
      }
      expect(good.counts.retried).toBe(2)
      await during(consumer.stop())
      expect(good.counts.stopped).toBe(1)
    })

    it('a handler past its time that never settles: told, retried, and its late end told too', async () => {
      const scene = await given.scene()
      const never = scene.gate()
      const { told } = await watched(scene, ({ attempt }) => (attempt === 1 ? never.wait() : undefined), {
        handlerTimeout: '100ms',
      })
      await scene.produce(['a'])
      await told('abandoned', 'error', /does not settle and is left behind \(handler-timeout, \d+ ms\)/)
      await scene.untilDone()
      expect(scene.calls.map(({ attempt }) => attempt)).toEqual([1, 2])
      never.open()
      await told('late', 'warn', /a handler finished after its partition had moved on/)
    })

    it('records that were deleted before they were read', async () => {
      const scene = await given.scene()
      const first = await scene.join()
      await scene.produce(['a'])
      await scene.untilDone()
      await first.stop()
      await scene.produce(['gone', 'gone', 'there'])
      await given.stage().deleteRecords(scene.topic, 0, 3n)
      // Not even a consumer that is to begin at the end may take it for a new group, and skip what is there.
      const { told } = await watched(scene, undefined, { startFrom: 'latest' })
      // kafkajs itself may have written over the offset before we could see it: then where it was is not known.
      const line = `records of ${scene.topic}/0 were deleted before they were read: (1|\\?) up to 3`
      await told('gone', 'error', new RegExp(line))
      await scene.untilDone()
      expect(scene.values()).toEqual(['a', 'there'])
    })

    it('a dead letter, with its reason', async () => {
      const scene = await given.scene()
      const { told } = await watched(scene, () => {
        throw new NonRetryableError('a bad order')
      })
      await scene.produce(['a'])
      await told('deadLettered', 'warn', /dead letter after 1 attempt, non-retryable: /)
    })

    it('R71: waiting is no error and no warning, and a consumer that waits is healthy', async () => {
      const scene = await given.scene({ schedule: ['1s'] })
      const { consumer, lines } = await watched(scene, ({ attempt }) => {
        if (attempt === 1) throw new RetryableError('not now')
      })
      await scene.produce(['a'])
      const tier = () => consumer.health().groups[1]?.partitions[0]
      await given.stage().until(() => tier()?.state === 'waiting', 'it waits')
      expect(tier()).toMatchObject({ held: 1, running: 0 })
      expect(tier()!.nextDueAt).toBeGreaterThan(given.stage().now() - 1)
      expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
      await scene.untilDone()
      const alarming = lines.filter(
        ({ level, event }) => (level === 'warn' || level === 'error') && event !== undefined,
      )
      expect(alarming).toEqual([])
    })

    it('a handler that hangs is seen in the health, by partition and age', async () => {
      const scene = await given.scene({ partitions: 2 })
      const gate = scene.gate()
      const { consumer } = await watched(scene, () => gate.wait())
      await scene.produce(['a'])
      await scene.untilCalls(1)
      await during(given.stage().takes(100))
      const lanes = consumer.health().groups[0]!.partitions
      const hanging = lanes.find(({ partition }) => partition === 0)
      expect(hanging).toMatchObject({ held: 1, running: 1 })
      expect(hanging!.oldestRunningMs).toBeGreaterThanOrEqual(90)
      expect(lanes.find(({ partition }) => partition === 1)).toMatchObject({ running: 0, oldestRunningMs: 0 })
    })

    it('R43: whatever a handler throws or rejects with is judged, told and carried on; the consumer lives', async () => {
      const scene = await given.scene()
      const made = new Map(ODD)
      const { consumer, hook, lines } = await watched(scene, ({ value }) => {
        const [how, name] = String(value).split(': ')
        const make = made.get(name ?? '')
        if (!make) return undefined
        if (how === 'throw') throw make()

        return Promise.reject(make())
      })
      await scene.produce([...ODD.flatMap(([name]) => [`throw: ${name}`, `reject: ${name}`]), 'fine'])
      await scene.untilDone()
      const dead = await scene.dead()
      expect(dead.map(({ value }) => String(value)).sort()).toEqual(
        ODD.flatMap(([name]) => [`throw: ${name}`, `reject: ${name}`]).sort(),
      )
      for (const record of dead) {
        expect(header(record, 'x-failure-reason')).toMatch(/^(non-retryable|exhausted|unclassified)$/)
        expect(header(record, 'x-error-class')).toBeTruthy()
      }
      expect(hook.counts.deadLettered).toBe(ODD.length * 2)
      expect(hook.counts.crashed).toBe(0)
      expect(lines.filter(({ event }) => event === 'problem')).toEqual([])
      expect(consumer.health().status).toBe('ok')
      expect(scene.values().at(-1)).toBeDefined()
      expect(scene.values()).toContain('fine')
    })
  })
}
