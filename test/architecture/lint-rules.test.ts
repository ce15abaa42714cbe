import { ESLint } from 'eslint'
import tseslint from 'typescript-eslint'
import { describe, expect, it } from 'vitest'

/**
 * A rule that never fires looks just like code without faults, so each rule of our own is shown a fault.
 * Snippets have no file on disk: the rules that need types are switched off, ours need none.
 */
const eslint = new ESLint({
  overrideConfig: [
    { files: ['**/*.ts'], ...(tseslint.configs.disableTypeChecked as ESLint.ConfigData & object) } as never,
    { files: ['**/*.ts'], languageOptions: { parserOptions: { projectService: false } } },
  ],
})

async function complaints(filePath: string, code: string): Promise<string[]> {
  const [result] = await eslint.lintText(code, { filePath })
  const ours = /^no-restricted-(syntax|globals|imports)$/
  const messages = result?.messages ?? []
  expect(messages.filter((message) => message.fatal)).toEqual([])
  return messages.filter(({ ruleId }) => ruleId !== null && ours.test(ruleId)).map(({ message }) => message)
}

const SRC = 'src/route/snippet.ts'
const PORT = 'src/ports/snippet.ts'
const TEST = 'test/unit/snippet.test.ts'
const HELPER = 'test/helpers/snippet.ts'

const timeAndChance = [
  'export const a = Date.now()',
  'export const a = new Date()',
  'export const a = Date()',
  'setTimeout(() => undefined, 1)',
  'setInterval(() => undefined, 1)',
  'setImmediate(() => undefined)',
  'globalThis.setTimeout(() => undefined, 1)',
  'export const a = performance.now()',
  'export const a = globalThis.performance',
  'export const a = process.hrtime.bigint()',
  'export const a = AbortSignal.timeout(1)',
  'export const a = Math.random()',
  "import { setTimeout as sleep } from 'node:timers/promises'\nexport { sleep }",
  "import { performance as p } from 'node:perf_hooks'\nexport { p }",
]

describe('time and chance', () => {
  it.each(timeAndChance)('are refused in the core: %s', async (code) => {
    expect(await complaints(SRC, code)).not.toEqual([])
  })

  it.each(timeAndChance)('are refused in the test kit outside its clock, allowed in ports: %s', async (code) => {
    expect(await complaints('src/testing/broker.ts', code)).not.toEqual([])
    expect(await complaints('src/testing/clock.ts', code)).toEqual([])
    expect(await complaints(PORT, code)).toEqual([])
  })

  it('leave a date of a known time alone', async () => {
    expect(await complaints(SRC, 'export const at = (ms: number) => new Date(ms).toISOString()')).toEqual([])
  })
})

describe('offsets', () => {
  it.each([
    'export const f = (offset: string) => Number(offset)',
    'export const f = (m: { offset: string }) => Number(m.offset)',
    'export const f = (m: { lastOffset(): string }) => Number(m.lastOffset())',
    "export const f = (h: Record<string, string>) => Number(h['x-original-offset'])",
    'export const f = (startOffset: string) => parseInt(startOffset, 10)',
    'export const f = (offset: string) => Number.parseInt(offset, 10)',
    'export const f = (m: { offset: string }) => +m.offset',
  ])('may not become a number, anywhere in src: %s', async (code) => {
    expect(await complaints(SRC, code)).not.toEqual([])
    expect(await complaints(PORT, code)).not.toEqual([])
  })

  it('may become a bigint, and other text a number', async () => {
    const code = 'export const f = (offset: string, ms: string) => [BigInt(offset), Number(ms), +ms]'
    expect(await complaints(SRC, code)).toEqual([])
  })
})

it('`export *` is refused in src', async () => {
  expect(await complaints(SRC, "export * from './other'")).not.toEqual([])
  expect(await complaints(PORT, "export * from './other'")).not.toEqual([])
  expect(await complaints(SRC, "export { one } from './other'")).toEqual([])
})

describe('tests', () => {
  it.each([
    'it.only("a", () => undefined)',
    'describe.only("a", () => undefined)',
    'test.only.each([1])("a", () => 1)',
  ])('may not be focused: %s', async (code) => {
    expect(await complaints(TEST, code)).not.toEqual([])
    expect(await complaints(HELPER, code)).not.toEqual([])
  })

  it.each([
    'await new Promise((r) => setTimeout(r, 10))',
    'await new Promise((resolve) => { setTimeout(resolve, 10) })',
    'await new Promise<void>(function (resolve) { setTimeout(() => resolve(), 10) })',
    "import { setTimeout as sleep } from 'node:timers/promises'\nawait sleep(10)",
  ])('may not sleep, helpers may: %s', async (code) => {
    expect(await complaints(TEST, code)).not.toEqual([])
    expect(await complaints(HELPER, code)).toEqual([])
  })

  it('may set a time-out for something else', async () => {
    const code = 'await new Promise((resolve, reject) => { once(resolve); setTimeout(reject, 10) })'
    expect(await complaints(TEST, code)).toEqual([])
  })
})
