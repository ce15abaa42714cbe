/** The TypeScript of the README and of docs/ compiles against the sources, with the strictness of this repository. */
import { resolve } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { pages, read, root } from './docs-source'

interface Block {
  /** Where it stands: `docs/errors.md:11`. */
  readonly where: string
  /** What the compiler takes it for: a file beside the page, that exists in memory only. */
  readonly file: string
  readonly code: string
}

/** Every block that is fenced as `ts`; one that is fenced as `ts fragment` is no program, and is left out. */
function blocksOf(page: string, text: string): Block[] {
  const fences = [...text.matchAll(/^( *)```ts\n([\s\S]*?)^ *```$/gm)]
  return fences.map((match, i) => ({
    where: `${page}:${text.slice(0, match.index).split('\n').length}`,
    file: resolve(root, `${page}.${i}.ts`),
    code: (match[2] ?? '').replaceAll(new RegExp(`^${match[1] ?? ''}`, 'gm'), ''),
  }))
}

/** Packages that the docs use and that this repository does not have: as much of them as is used. */
const SHIMS = `
declare module 'prom-client' {
  interface Options<L extends string> { name: string; help: string; labelNames?: readonly L[] }
  type Labels<L extends string> = Partial<Record<L, string | number>>
  export class Counter<L extends string = string> { constructor(options: Options<L>); inc(labels: Labels<L>, by?: number): void }
  export class Gauge<L extends string = string> {
    constructor(options: Options<L>)
    set(labels: Labels<L>, value: number): void
    reset(): void
  }
  export class Histogram<L extends string = string> {
    constructor(options: Options<L>)
    observe(labels: Labels<L>, value: number): void
  }
}
`

/** What the compiler says of these blocks: one line for each fault, with page and line. */
function faults(blocks: readonly Block[]): string[] {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(resolve(root, 'tsconfig.json'), (path) => ts.sys.readFile(path)).config,
    ts.sys,
    root,
  )
  options.paths = {
    retryline: [resolve(root, 'src/index.ts')],
    'retryline/testing': [resolve(root, 'src/testing/index.ts')],
  }
  // An example ends where its point is made.
  options.noUnusedLocals = options.noUnusedParameters = false

  const shims = resolve(root, 'docs/shims.d.ts')
  const inMemory = new Map([[shims, SHIMS], ...blocks.map(({ file, code }) => [file, `${code}\nexport {}\n`] as const)])
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (path) => inMemory.has(path) || fileExists.call(host, path)
  host.readFile = (path) => inMemory.get(path) ?? readFile.call(host, path)
  host.getSourceFile = (path, languageVersion, ...rest) => {
    const text = inMemory.get(path)
    if (text !== undefined) return ts.createSourceFile(path, text, languageVersion)
    return getSourceFile.call(host, path, languageVersion, ...rest)
  }

  const program = ts.createProgram([...inMemory.keys()], options, host)
  return blocks.flatMap(({ where, file }) => {
    const source = program.getSourceFile(file)
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    return found.map(({ start = 0, messageText }) => {
      const line = source?.getLineAndCharacterOfPosition(start).line ?? 0
      return `${where}, line ${line + 1} of the block: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
    })
  })
}

const all = pages().flatMap((page) => blocksOf(page, read(page)))

test('every block of TypeScript in the docs compiles', { timeout: 180_000 }, () => {
  expect(all.length).toBeGreaterThan(15)
  expect(faults(all)).toEqual([])
})

test('a block that does not compile is found', { timeout: 180_000 }, () => {
  const page = [
    '```ts',
    "import { createResilientConsumer } from 'retryline'",
    'createResilientConsumer({ shedule: [] })',
    '```',
    '```ts',
    "import { nothing } from 'retryline/testing'",
    '```',
    '  ```ts',
    '  const indented: string = 1',
    '  ```',
    '```ts fragment',
    'this is no TypeScript',
    '```',
  ]
  const blocks = blocksOf('docs/planted.md', page.join('\n'))
  expect(blocks.map(({ where }) => where)).toEqual(['docs/planted.md:1', 'docs/planted.md:5', 'docs/planted.md:8'])
  const found = faults(blocks)
  for (const { where } of blocks) expect(found.some((line) => line.startsWith(`${where},`))).toBe(true)
})

test('few blocks are left out', () => {
  const fragments = pages().flatMap((page) => read(page).match(/^ *```ts fragment$/gm) ?? [])
  expect(fragments.length).toBeLessThan(3)
  // The README's blocks are files that CI runs, also those that are no TypeScript.
  const withoutExamples = (page: string): string => read(page).replaceAll(/^(<!-- example: .*-->\n\n```)js$/gm, '$1')
  const others = pages().flatMap(
    (page) => withoutExamples(page).match(/^ *```(typescript|js|javascript|tsx)\b/gm) ?? [],
  )
  expect(others).toEqual([])
})
