/** What the tests of the docs read: the pages, and names out of the sources that exist only as types. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import ts from 'typescript'

export const root = resolve(import.meta.dirname, '../..')

export function read(path: string): string {
  return readFileSync(resolve(root, path), 'utf8')
}

/** The README, where there is one, and every page. */
export function pages(): string[] {
  const docs = readdirSync(resolve(root, 'docs')).filter((name) => name.endsWith('.md'))
  return [...docs.map((name) => `docs/${name}`), ...(existsSync(resolve(root, 'README.md')) ? ['README.md'] : [])]
}

/** The text below each heading that begins with `marks` and is one name (`## NAME`, ``### `name` ``). */
export function sections(page: string, marks: string): Map<string, string> {
  const parts = read(page).split(/^(?=#+ )/m)
  const heading = new RegExp(`^${marks} \`?([\\w-]+)\`?\\n`)
  return new Map(
    parts.flatMap((part): [string, string][] => {
      const name = heading.exec(part)?.[1]
      return name === undefined ? [] : [[name, part]]
    }),
  )
}

/** The rows of every table of a text, each a list of cells. */
export function rows(text: string): string[][] {
  const lines = text.split('\n').filter((line) => /^\|/.test(line) && !/^\|[\s|:-]+\|$/.test(line))
  return lines.map((line) =>
    line
      .replace(/^\||\|$/g, '')
      .split('|')
      .map((cell) => cell.trim()),
  )
}

/** Every `name` in a cell or a text, fenced code left out. */
export function ticked(text: string): string[] {
  return [...text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '').matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '')
}

/** The members of an interface, those that it extends or intersects with in the same file included. */
export function members(path: string, name: string): Map<string, string[]> {
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.ES2022, true)
  const interfaces = new Map<string, ts.InterfaceDeclaration>()
  source.forEachChild((node) => {
    if (ts.isInterfaceDeclaration(node)) interfaces.set(node.name.text, node)
  })
  const nameOf = (member: ts.TypeElement): string => member.name?.getText(source) ?? ''

  /** The properties of the type of one member. */
  const propertiesOf = (type: ts.TypeNode | undefined): string[] => {
    if (type === undefined) return []
    if (ts.isTypeLiteralNode(type)) return type.members.map(nameOf)
    if (ts.isIntersectionTypeNode(type)) return type.types.flatMap(propertiesOf)
    if (ts.isTypeReferenceNode(type)) return (interfaces.get(type.typeName.getText(source))?.members ?? []).map(nameOf)
    return []
  }
  const found = interfaces.get(name)
  if (found === undefined) throw new Error(`${path} has no interface ${name}`)
  return new Map(
    found.members.map((member) => [nameOf(member), ts.isPropertySignature(member) ? propertiesOf(member.type) : []]),
  )
}
