import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { cruise, type ICruiseResult, type IConfiguration } from 'dependency-cruiser'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

/** Each kind of forbidden import is planted in a small tree of its own: a rule that never fires guards nothing. */

const config = createRequire(import.meta.url)('../../.dependency-cruiser.cjs') as IConfiguration

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'retryline-stages-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

let trees = 0

/** The names of the rules that a tree of these files breaks. */
async function broken(files: Record<string, string>): Promise<string[]> {
  const base = join(root, String(trees++))
  const all: Record<string, string> = {
    'src/errors.ts': 'export const code = 1',
    'src/ports/index.ts': 'export interface Clock { now(): number }',
    'src/record/index.ts': 'export interface Rec { offset: bigint }',
    ...Object.fromEntries(
      ['zod', 'ms', 'p-limit', 'kafkajs', 'left-pad'].flatMap((name) => [
        [`node_modules/${name}/package.json`, JSON.stringify({ name, version: '1.0.0', main: 'index.js' })],
        [`node_modules/${name}/index.js`, 'module.exports = 1'],
      ]),
    ),
    'package.json':
      '{"dependencies":{"zod":"1","ms":"1","p-limit":"1","left-pad":"1"},"peerDependencies":{"kafkajs":"1"}}',
    ...files,
  }
  for (const [name, text] of Object.entries(all)) {
    await mkdir(dirname(join(base, name)), { recursive: true })
    await writeFile(join(base, name), text)
  }
  // The fixture has no tsconfig; relative imports need none.
  const { tsConfig: _, ...options } = config.options ?? {}
  const result = await cruise(['src'], {
    ...(options as object),
    baseDir: base,
    validate: true,
    ruleSet: { forbidden: config.forbidden ?? [] },
  })
  const { summary } = result.output as ICruiseResult
  return [...new Set(summary.violations.map(({ rule }) => rule.name))].sort()
}

describe('stages', () => {
  it('may import what stands to their left, and the error codes', async () => {
    const route =
      "import type { Clock } from '../ports'\nimport { code } from '../errors'\nexport const c = code as unknown as Clock"
    expect(await broken({ 'src/route/index.ts': route })).toEqual([])
  })

  it.each([
    ['record', 'ports'],
    ['ports', 'envelope'],
    ['envelope', 'topology'],
    ['topology', 'classify'],
    ['classify', 'observe'],
    ['observe', 'route'],
    ['route', 'deliver'],
    ['deliver', 'config'],
    ['config', 'consume'],
    ['consume', 'dlq'],
    ['dlq', 'admin'],
    ['admin', 'adapters'],
    ['record', 'cli'],
    ['consume', 'testing'],
  ])('%s may not import %s', async (stage, right) => {
    const files = {
      [`src/${stage}/planted.ts`]: `import { x } from '../${right}/x'\nexport const y = x`,
      [`src/${right}/x.ts`]: 'export const x = 1',
    }
    expect(await broken(files)).toEqual([`stage-${stage}`])
  })

  it('may not import a type from the right either', async () => {
    const files = {
      'src/envelope/planted.ts': "import type { X } from '../route/x'\nexport type Y = X",
      'src/route/x.ts': 'export type X = 1',
    }
    expect(await broken(files)).toEqual(['stage-envelope'])
  })

  it('may not import in a circle, types included', async () => {
    const files = {
      'src/route/a.ts': "import type { B } from './b'\nexport type A = B",
      'src/route/b.ts': "import type { A } from './a'\nexport type B = A",
    }
    expect(await broken(files)).toEqual(['no-cycles'])
  })
})

describe('the rooms beside the core', () => {
  const x = Object.fromEntries(
    ['route/x', 'testing/x', 'testing/kit/x', 'index'].map((path) => [`src/${path}.ts`, 'export const x = 1']),
  )
  const importing = (from: string) => `import { x } from '${from}'\nexport const y = x`

  it.each([
    ['src/adapters/kafkajs/a.ts', '../../route/x', 'adapters-know-ports'],
    ['src/adapters/kafkajs/a.ts', '../../testing/x', 'adapters-know-ports'],
    ['src/testing/a.ts', '../route/x', 'testing-knows-ports'],
    ['src/testing/a.ts', './kit/x', 'fake-without-kit'],
    ['src/testing/kit/a.ts', '../../index', 'kit-without-front-door'],
    ['src/errors.ts', './route/x', 'errors-stand-alone'],
    ['src/index.ts', './testing/x', 'front-door-without-testing'],
  ])('%s may not import %s', async (file, from, rule) => {
    expect(await broken({ ...x, [file]: importing(from) })).toEqual([rule])
  })

  it('the helpers for tests may import the engine', async () => {
    expect(await broken({ ...x, 'src/testing/kit/a.ts': importing('../../route/x') })).toEqual([])
  })

  it('sources may not import tests', async () => {
    const files = { 'test/helpers/x.ts': 'export const x = 1', 'src/index.ts': importing('../test/helpers/x') }
    expect(await broken(files)).toEqual(['src-stands-alone'])
  })
})

describe('packages', () => {
  it.each([
    ['route', 'zod', ['npm-zod-only-in-config']],
    ['config', 'ms', ['npm-ms-only-in-topology']],
    ['config', 'p-limit', ['npm-p-limit-only-in-consume']],
    ['deliver', 'kafkajs', ['npm-no-other']],
    ['adapters/kafkajs', 'kafkajs', ['npm-no-other']],
    ['testing', 'kafkajs', ['npm-no-other']],
    ['consume', 'left-pad', ['npm-no-other']],
    ['consume', 'not-installed', ['resolvable']],
    ['route', 'node:fs', ['core-builtins']],
    ['consume', 'timers', ['core-builtins']],
    ['consume', 'node:crypto', []],
    ['config', 'zod', []],
    ['topology', 'ms', []],
    ['consume', 'p-limit', []],
    ['testing', 'node:fs', []],
  ])('%s importing %s breaks %j', async (folder, name, rules) => {
    const files = { [`src/${folder}/planted.ts`]: `import x from '${name}'\nexport const y = x` }
    expect(await broken(files)).toEqual(rules)
  })

  it('a type of kafkajs is an import of kafkajs', async () => {
    const files = { 'src/adapters/kafkajs/a.ts': "import type { Kafka } from 'kafkajs'\nexport type K = Kafka" }
    expect(await broken(files)).toEqual(['npm-no-other'])
  })
})
