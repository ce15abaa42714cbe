/**
 * Writes the examples into the README: `npm run readme`. A test fails where the two differ, so that every line of code
 * in the README is one that CI has run.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = new URL('../', import.meta.url)
const BLOCK = /<!-- example: (\S+) -->\n\n```(?:ts|js)\n[\s\S]*?```/g

/** What a user imports, in place of the sources that the example imports here. */
export function asUser(source: string): string {
  return source
    .replace(/'\.\.\/src\/index'( \/\/ yours: 'retryline')?/g, "'retryline'")
    .replace(/'\.\.\/src\/testing(\/index)?'( \/\/ yours: 'retryline\/testing')?/g, "'retryline/testing'")
    .trimEnd()
}

export function withExamples(readme: string, read: (path: string) => string): string {
  return readme.replace(
    BLOCK,
    (_, path: string) =>
      `<!-- example: ${path} -->\n\n\`\`\`${path.endsWith('.ts') ? 'ts' : 'js'}\n${asUser(read(path))}\n\`\`\``,
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = new URL('README.md', root)
  writeFileSync(
    path,
    withExamples(readFileSync(path, 'utf8'), (name) => readFileSync(new URL(name, root), 'utf8')),
  )
}
