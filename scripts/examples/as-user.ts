/**
 * An example as its user has it: against the built package, by the names that the package exports. So what runs is the text
 * that the README shows, and the build is what it runs on. The build is one apart, since others may be at work on `dist`.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { build } from 'tsup'
import ts from 'typescript'
import bundles from '../../tsup.config'
import { asUser } from '../readme'

export interface UserSide {
  /** Writes an example for plain Node, with `rename` done to its text, and returns where it stands. */
  place(path: string, rename?: (source: string) => string): string
}

/** Builds the package into a folder that Node takes for it: there `retryline` is what was built. */
export async function userSide(root: string): Promise<UserSide> {
  // Below the root, so that all other packages are found.
  const home = join(root, '.cache', `examples-${process.pid}`)
  mkdirSync(home, { recursive: true })
  process.on('exit', () => rmSync(home, { recursive: true, force: true }))
  for (const options of Array.isArray(bundles) ? bundles : []) {
    await build({ ...options, config: false, dts: false, sourcemap: false, silent: true, outDir: join(home, 'dist') })
  }
  const { name, type, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
    string,
    unknown
  >
  writeFileSync(join(home, 'package.json'), JSON.stringify({ name, type, exports }))

  function place(path: string, rename: (source: string) => string = (source) => source): string {
    const source = rename(asUser(readFileSync(path, 'utf8')))
    const isTypeScript = path.endsWith('.ts')
    const placed = join(home, isTypeScript ? basename(path).replace(/\.ts$/, '.mjs') : basename(path))
    writeFileSync(placed, isTypeScript ? compiled(source, path) : source)
    return placed
  }
  return { place }
}

/** By TypeScript itself, as NestJS does it: others leave out the types of constructors, by which it injects. */
function compiled(source: string, fileName: string): string {
  const { outputText } = ts.transpileModule(source, {
    fileName,
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  })
  return outputText
}
