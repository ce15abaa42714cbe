import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { withExamples } from '../../scripts/readme'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const readme = read('README.md')

test('every block of code in the README is an example that CI runs', () => {
  expect(readme).toBe(withExamples(readme, read))
  const blocks = readme.match(/```(ts|js)\n/g)?.length
  expect(blocks).toBe(readme.match(/<!-- example: /g)?.length)
})

test('a first consumer takes under 20 lines', () => {
  const first = /<!-- example: examples\/first-consumer\.ts -->\n\n```ts\n([\s\S]*?)```/.exec(readme)?.[1]
  const code = first?.split('\n').filter((line) => line.trim() !== '' && !line.trim().startsWith('//'))
  expect(code?.length).toBeLessThan(20)
})

test('the two commands of the README are scripts of the package', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  expect(readme).toContain('npm ci && npm run demo')
  expect(readme).toContain('npm ci && npm test')
  expect(scripts.demo).toBeDefined()
  expect(scripts.test).toBeDefined()
})
