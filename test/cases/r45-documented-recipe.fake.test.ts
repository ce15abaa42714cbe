/**
 * R45: a recipe that does not cover it.
 * Given the README's recipe with a hook for dead letters, word for word but for its handler, which is a method of a class
 * with a dependency, as in Nest.
 * When records fail once, twice and for good, with each kind of error that such a service meets: Nest's HTTP exceptions
 * (retryable and not), its RPC exception, a lost connection, a bug, text, nothing at all, and our own.
 * Then what is worth a retry is called as often as the schedule says, what is not is called once, the hook is called once
 * for each that died, every offset is committed, and no kind of error stops the consumer.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import ts from 'typescript'
import { afterAll, describe, expect, it, vi } from 'vitest'
import * as library from '../../src'
import * as testing from '../../src/testing'

const { NonRetryableError, RetryableError } = library

/** What the recipe writes is told by the test where it matters. */
const muted = (['stdout', 'stderr'] as const).map((name) => vi.spyOn(process[name], 'write').mockReturnValue(true))
afterAll(() => {
  for (const each of muted) each.mockRestore()
})

/** Nest's exceptions by shape: what they carry is what the classifier sees. */
class HttpException extends Error {
  constructor(
    readonly response: string,
    readonly status: number,
  ) {
    super(response)
    this.name = new.target.name
  }
  getStatus(): number {
    return this.status
  }
}
class ServiceUnavailableException extends HttpException {}
class BadRequestException extends HttpException {}
class RpcException extends Error {
  constructor(readonly error: string) {
    super(error)
    this.name = 'RpcException'
  }
  getError(): string {
    return this.error
  }
}

const KINDS: readonly { name: string; make: () => unknown; isRetried: boolean }[] = [
  { name: 'RetryableError', make: () => new RetryableError('busy'), isRetried: true },
  { name: 'HTTP 503', make: () => new ServiceUnavailableException('down', 503), isRetried: true },
  { name: 'HTTP 429', make: () => new HttpException('slow down', 429), isRetried: true },
  { name: 'a lost connection', make: () => Object.assign(new Error('gone'), { code: 'ECONNRESET' }), isRetried: true },
  {
    name: 'a wrapped lost connection',
    make: () => new RpcException2(Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })),
    isRetried: true,
  },
  { name: 'HTTP 400', make: () => new BadRequestException('no customer', 400), isRetried: false },
  { name: 'RpcException', make: () => new RpcException('no customer'), isRetried: false },
  { name: 'NonRetryableError', make: () => new NonRetryableError('a bad order'), isRetried: false },
  { name: 'TypeError', make: () => new TypeError('x of undefined'), isRetried: false },
  { name: 'text', make: () => 'just text', isRetried: false },
  { name: 'nothing at all', make: () => undefined, isRetried: false },
]

/** As one wraps what a client has thrown. */
class RpcException2 extends RpcException {
  constructor(cause: Error) {
    super('payment failed')
    this.cause = cause
  }
}

class PaymentsController {
  readonly calls: string[] = []
  constructor(private readonly bank: { answer(): void }) {}

  async handleOrder({ message }: library.EachMessage, ctx: library.HandlerContext): Promise<void> {
    this.calls.push(`${message.offset}#${ctx.attempt}`)
    await Promise.resolve()
    if (ctx.attempt <= Number(message.value)) this.bank.answer()
  }
}

interface Ran {
  readonly kafka: testing.FakeKafka
  readonly memory: ReturnType<typeof library.memoryHooks>
  readonly said: readonly string[]
}

/** Runs the README's block of this example with another handler; what it made and what it printed. */
async function runRecipe(handler: library.Handler): Promise<Ran> {
  const readme = readFileSync(resolve(import.meta.dirname, '../../README.md'), 'utf8')
  const block = /<!-- example: examples\/events-and-hooks\.ts -->\s+```ts\n([^]*?)\n```/.exec(readme)?.[1] ?? ''
  const own = /\n {2}handler: async [^]*?\n {2}\},\n/
  expect(block, 'the recipe and its handler').toMatch(own)
  const recipe = block.replace(own, '\n  handler: given,\n').replaceAll(/^import .*\n/gm, '')
  const { outputText } = ts.transpileModule(`export async function run() {\n${recipe}\nreturn { kafka, memory }\n}`, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS },
  })
  const names = { ...library, ...testing }
  const said: string[] = []
  const made: { run?: () => Promise<Ran> } = {}
  const scope = { ...names, given: handler, exports: made, console: { log: (line: string) => void said.push(line) } }
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the README's code, with what it would import
  new Function(...Object.keys(scope), outputText)(...Object.values(scope))
  return { ...(await made.run!()), said }
}

describe('the documented recipe', () => {
  it.each(KINDS)('R45: a class with a dependency, and $name', async ({ make, isRetried }) => {
    const controller = new PaymentsController({
      answer() {
        throw make()
      },
    })
    const { kafka, memory, said } = await runRecipe((payload, ctx) => controller.handleOrder(payload, ctx))
    // Three good ones, and one each that fails once, twice and three times: at the third attempt of three it dies.
    expect(memory.counts).toMatchObject({
      attempt: isRetried ? 3 + 2 + 3 + 3 : 6,
      retried: isRetried ? 1 + 2 + 2 : 0,
      deadLettered: isRetried ? 1 : 3,
      crashed: 0,
    })
    expect(controller.calls).toHaveLength(memory.counts.attempt)
    const letters = kafka.records('orders.dlq')
    expect(letters).toHaveLength(memory.counts.deadLettered)
    expect(said.filter((line) => line.startsWith('page somebody: orders'))).toHaveLength(letters.length)
    expect(said).toContain('health: ok')
    const committed = [...kafka.committed('billing', 'orders').values()].reduce((sum, { offset }) => sum + offset, 0n)
    expect(committed).toBe(6n)
  })
})
