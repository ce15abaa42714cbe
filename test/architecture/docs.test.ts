/** The pages of docs/ and the sources say the same: each list is compared both ways, each number is tried. */
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { builtInRules } from '../../src/classify'
import { FIELDS } from '../../src/config/fields'
import { parseSize } from '../../src/config/size'
import type { Health, StopReport } from '../../src/consume'
import { missingTopic } from '../../src/consume/topic-problems'
import { FAILURE_REASONS, HEADER, LIMIT, OWN_HEADER_BUDGET, type Field } from '../../src/envelope'
import { EVENT_TYPES, LOG_LINES, type EventType } from '../../src/observe'
import { allowCommand } from '../../src/ports'
import { accessOf, buildTopology, parseDuration, type Access, type Role } from '../../src/topology'
import { members, pages, read, root, rows, sections, ticked } from './docs-source'

const sorted = (names: Iterable<string>): string[] => [...new Set(names)].sort()

describe('docs/errors.md', () => {
  const codes = [...read('src/errors.ts').matchAll(/^ {2}\| '(RETRYLINE_\w+)'/gm)].map((match) => match[1] ?? '')
  const documented = sections('docs/errors.md', '##')

  it('has every code, and no other', () => {
    expect(codes.length).toBeGreaterThan(5)
    expect(sorted(documented.keys())).toEqual(sorted(codes))
    expect(documented.size).toBe(codes.length)
  })

  it.each(codes)('says of %s when it comes and what to do', (code) => {
    expect(documented.get(code)).toMatch(/\*\*When\.\*\* [\s\S]+\*\*What to do\.\*\* /)
  })

  test.each(pages())('%s names no code that does not exist', (page) => {
    const named = read(page).match(/RETRYLINE_[A-Z_]+/g) ?? []
    expect(named.filter((code) => !codes.includes(code))).toEqual([])
  })
})

describe('docs/events-and-metrics.md', () => {
  const documented = sections('docs/events-and-metrics.md', '###')
  const shapes = members('src/observe/events.ts', 'EventShapes')
  const at = [...members('src/observe/events.ts', 'At').keys()]

  it('has every event type, and no other', () => {
    expect([...documented.keys()]).toEqual([...EVENT_TYPES])
  })

  it.each(EVENT_TYPES)('has the fields of %s, and no other', (type) => {
    const fields = rows(documented.get(type) ?? '')
      .slice(1)
      .flatMap(([names = '']) => ticked(names))
    expect(fields).toEqual([...new Set(fields)])
    expect(sorted(fields)).toEqual(sorted(shapes.get(type) ?? []))
  })

  it.each(EVENT_TYPES)('says at which level %s is logged', (type: EventType) => {
    const text = (documented.get(type) ?? '').replaceAll('\n', ' ')
    const said = /Log: (.*?)\.( |$)/.exec(text)?.[1] ?? ''
    const line = LOG_LINES[type]
    if (line === undefined) expect(said).toBe('none')
    else if (typeof line.level === 'string') expect(said.split(', ')[0]).toBe(`\`${line.level}\``)
    else expect(ticked(said).length).toBe(2)
    expect(said.includes('per record')).toBe(line?.perRecord === true)
  })

  it('finds shapes at all', () => {
    expect(at).toEqual(['topic', 'partition', 'offset'])
    expect(shapes.get('attempt')).toContain('latenessMs')
  })
})

describe('docs/envelope.md', () => {
  const table = rows(sections('docs/envelope.md', '##').get('Headers') ?? '').slice(1)

  it('has every header with its limit, and no other', () => {
    const documented = table.map(([name = '', limit]) => [ticked(name)[0], Number(limit)])
    const fields = Object.keys(HEADER) as Field[]
    expect(documented).toHaveLength(fields.length)
    expect(Object.fromEntries(documented) as unknown).toEqual(
      Object.fromEntries(fields.map((field) => [HEADER[field], LIMIT[field]])),
    )
  })

  it('has every failure reason, in order, and no other', () => {
    const reasons = /## Failure reasons\n([\s\S]*?)\n## /.exec(read('docs/envelope.md'))?.[1] ?? ''
    expect(
      rows(reasons)
        .slice(1)
        .flatMap(([name = '']) => ticked(name)),
    ).toEqual([...FAILURE_REASONS])
  })

  test.each(pages())('%s names no header of ours that does not exist', (page) => {
    const ours: string[] = Object.values(HEADER)
    const named = (read(page).match(/\bx-[a-z-]+[a-z]/g) ?? []).filter((name) => !ours.includes(name))
    expect(named.filter((name) => name !== 'x-original')).toEqual([])
  })

  it('says by how much the headers make a record larger', () => {
    expect(read('docs/envelope.md')).toContain(`at most ${OWN_HEADER_BUDGET} bytes`)
    expect(read('docs/operations.md')).toContain(`up to ${OWN_HEADER_BUDGET} bytes`)
  })
})

describe('docs/classification.md', () => {
  const page = read('docs/classification.md')

  it('has the built-in table, word for word', () => {
    const lines = builtInRules.map(({ id, verdict, because }) => `| \`${id}\` | ${verdict} | ${because} |`)
    const table = ['| rule | verdict | because |', '| --- | --- | --- |', ...lines].join('\n')
    const found = /<!-- begin: the built-in table -->\n\n([\s\S]*?)\n\n<!-- end: the built-in table -->/.exec(page)
    expect(found?.[1]).toBe(table)
  })

  it('names no other rule below it', () => {
    const [, notes = ''] = page.split('What some of them cover:')
    const named = [...(notes.split('\n## ')[0] ?? '').matchAll(/(?:^- |\. )`([\w-]+)`:/gm)].map((match) => match[1])
    expect(named.length).toBeGreaterThan(8)
    expect(named.filter((id) => !builtInRules.some((rule) => rule.id === id))).toEqual([])
  })
})

describe('docs/options.md', () => {
  const documented = sections('docs/options.md', '###')
  const names = Object.keys(FIELDS) as (keyof typeof FIELDS)[]
  const spec = (name: string): string => documented.get(name)?.split('\n\n')[1]?.replaceAll('\n', ' ') ?? ''
  const takes = (name: keyof typeof FIELDS, value: unknown): boolean => FIELDS[name].safeParse(value).success

  it('has every option, and no other', () => {
    expect(sorted(documented.keys())).toEqual(sorted(names))
  })

  it.each(names)('says of %s whether it is required, and its default', (name) => {
    const said = spec(name)
    const [, written] = /default `([^`]+)`/.exec(said) ?? []
    const standard: unknown = takes(name, undefined) ? FIELDS[name].parse(undefined) : undefined
    // `schedule` and `classify` are checked elsewhere, and `topic` makes a list of one out of everything.
    if (['kafka', 'groupId', 'topic', 'schedule', 'handler'].includes(name)) expect(said).toMatch(/^Required[;.]/)
    else if (standard === undefined) expect(said).toMatch(/no default|where none is given/)
    else {
      const value: unknown = written?.startsWith("'") ? written.slice(1, -1) : written
      const given: unknown =
        typeof standard === 'string'
          ? value
          : parseDuration(written, '').ok || parseSize(written) !== undefined
            ? written
            : JSON.parse(written ?? 'null')
      expect(FIELDS[name].parse(given)).toEqual(standard)
    }
  })

  const bounded = names.filter((name) => /from `\S+` to `/.test(spec(name)))

  it.each(bounded)('says the bounds of %s', (name) => {
    const [, low = '', high = ''] = /from `([^`]+)` to `([^`]+)`/.exec(spec(name)) ?? []
    for (const [end, beyond] of [
      [low, -1],
      [high, 1],
    ] as const) {
      const duration = parseDuration(end, '')
      const number = duration.ok ? duration.ms : (parseSize(end) ?? Number(end))
      expect(takes(name, number), `${name}: ${end}`).toBe(true)
      // 0 is a duration of its own where it is taken at all.
      if (number + beyond !== 0) expect(takes(name, number + beyond), `${name}: beyond ${end}`).toBe(false)
    }
  })

  it('says bounds wherever there are some', () => {
    const silent = names.filter((name) => {
      const issue = FIELDS[name].safeParse(NaN).error?.issues[0]?.message ?? ''
      return /from '?\d/.test(issue) && !bounded.includes(name)
    })
    expect(silent).toEqual([])
  })

  it('has every field of the context', () => {
    const table = rows(/## The context of a handler\n([\s\S]*)/.exec(read('docs/options.md'))?.[1] ?? '').slice(1)
    const said = table.flatMap(([fields = '']) => ticked(fields).map((field) => field.replace(/\(.*/, '')))
    expect(sorted(said)).toEqual(sorted(members('src/record/handler.ts', 'HandlerContext').keys()))
  })
})

describe('docs/operations.md', () => {
  const page = read('docs/operations.md')
  const words = new Set(ticked(page))

  it('has the commands that a failed start would give', () => {
    const topology = buildTopology({ topics: ['orders'], groupId: 'billing', delays: [60_000, 600_000, 3_600_000] })
    const around = {
      mainPartitions: 6,
      mainSettings: { cleanupPolicy: 'delete', retentionMs: 604_800_000, maxMessageBytes: 1_048_588 },
      headerBudgetBytes: OWN_HEADER_BUDGET,
      jitter: 0,
    }
    const commands = topology
      .allTopics()
      .filter(({ role }) => role !== 'main')
      .map((role) => missingTopic(role, around).replace(/^.*make it: /, ''))
    expect(/```sh\n([\s\S]*?)\n```/.exec(page)?.[1]).toBe(commands.join('\n'))
  })

  /** What the page says of when a permission is needed. */
  const WHEN = {
    verify: "unless `topicSetup: 'warn'`",
    create: "`topicSetup: 'create'`",
    formerGroupIds: "`formerGroupIds: ['old']`",
    'exactly-once': "`delivery: 'exactly-once'`",
    toRetry: 'to put them on a retry topic',
    toMain: 'to put them on the main topic',
    records: 'to show dead letters',
  }
  it.each<[Role, ...Access['when'][][]]>([
    ['consumer', [undefined, 'verify'], ['exactly-once']],
    ['replayer', [undefined, 'toRetry', 'toMain']],
    ['monitor', [undefined], ['records']],
  ])('has every permission that a %s needs, and no other, and the commands for them', (role, ...blocks) => {
    const input = { topics: ['orders'], groupId: 'billing', delays: [60_000, 600_000, 3_600_000] }
    const list = accessOf(buildTopology({ ...input, formerGroupIds: ['old'] }), role)
    const lines = list.map(({ operation, resourceType, name, pattern, why, when }) => [
      `\`${operation}\``,
      resourceType,
      `\`${name}\``,
      pattern,
      when === undefined ? 'always' : WHEN[when],
      why,
    ])
    const table = [
      ['operation', 'resource type', 'resource', 'pattern', 'needed', 'why'],
      Array(6).fill('---'),
      ...lines,
    ]
    const text = table.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
    const found = new RegExp(`<!-- begin: permissions of a ${role} -->\n\n([\\s\\S]*?)\n\n<!-- end`).exec(page)?.[1]
    expect(found).toBe(text)
    // One command for each resource: those that are usually needed, and in a block of their own those that some need.
    const user = role === 'consumer' ? 'billing' : `billing-${role}`
    for (const block of blocks) {
      const usual = list.filter(({ when }) => block.includes(when))
      const commands = [...new Set(usual.map(({ name }) => name))].map((name) => {
        const own = usual.filter((access) => access.name === name)
        const { resourceType, pattern } = own[0]!
        const operations = own.map(({ operation }) => operation)
        const command = allowCommand(`User:${user}`, operations, resourceType, [name])
        return pattern === 'prefixed' ? `${command} --resource-pattern-type prefixed` : command
      })
      expect(page).toContain(`\`\`\`sh\n${commands.join('\n')}\n\`\`\``)
    }
  })

  /** The block of JSON that is announced as an example of this type. */
  const exampleOf = (type: string): unknown =>
    JSON.parse(new RegExp(`<!-- example of: ${type} -->\\n\\n\`\`\`json\\n([\\s\\S]*?)\\n\`\`\``).exec(page)?.[1] ?? '')
  const keysOf = (objects: readonly object[]): string[] => sorted(objects.flatMap((object) => Object.keys(object)))

  it('shows health() as it is: every member of its types, and no other', () => {
    const health = exampleOf('Health') as Health
    const fields = (name: string): string[] => sorted(members('src/consume/health.ts', name).keys())
    expect(keysOf([health])).toEqual(fields('Health'))
    expect(keysOf(health.groups)).toEqual(fields('GroupHealth'))
    expect(keysOf(health.groups.flatMap(({ partitions }) => partitions))).toEqual(fields('PartitionHealth'))
  })

  it('shows the report of a stop as it is', () => {
    const report = exampleOf('StopReport') as StopReport
    expect(keysOf([report])).toEqual(sorted(members('src/consume/lifecycle.ts', 'StopReport').keys()))
    expect(keysOf(report.abandoned)).toEqual(sorted(members('src/observe/events.ts', 'At').keys()))
  })

  it.each([
    ['Health', 'status'],
    ['GroupHealth', 'state'],
    ['PartitionHealth', 'state'],
  ])('names every state of %s', (name, member) => {
    const source = read('src/consume/health.ts')
    const body = source.slice(source.indexOf(`interface ${name} `))
    const line = new RegExp(`readonly ${member}: (.*)`).exec(body)?.[1] ?? ''
    const states = [...line.matchAll(/'(\w+)'/g)].map((match) => match[1] ?? '')
    expect(states.length).toBeGreaterThan(2)
    expect(states.filter((state) => !words.has(state))).toEqual([])
  })
})

describe('docs/testing.md', () => {
  const page = read('docs/testing.md')
  const said = new Set(ticked(page).map((text) => text.replace(/\(.*/, '')))

  it.each([
    ['src/testing/create-fake-kafka.ts', 'FakeKafka'],
    ['src/testing/create-fake-kafka.ts', 'FakeKafkaOptions'],
    ['src/testing/clock.ts', 'ManualClock'],
    ['src/testing/broker-controls.ts', 'BrokerControls'],
    ['src/testing/faults.ts', 'NextRequest'],
    ['src/testing/kit/record.ts', 'RecordSpec'],
    ['src/testing/kit/run-to-end.ts', 'RunReport'],
    ['src/testing/kit/filter.ts', 'CopyFilter'],
    ['src/testing/kit/filter.ts', 'DeadLetterFilter'],
    ['src/testing/kit/filter.ts', 'RetryFilter'],
    ['src/testing/kit/copies.ts', 'Copy'],
    ['src/testing/kit/copies.ts', 'DeadLetter'],
    ['src/testing/kit/copies.ts', 'Retry'],
    ['src/testing/kit/expect-committed.ts', 'Committed'],
    ['src/testing/kit/attempt-watch.ts', 'Watched'],
    ['src/testing/kit/attempt.ts', 'AttemptResult'],
    ['src/testing/explore.ts', 'ExploreOptions'],
    ['src/testing/explore-world.ts', 'World'],
    ['src/testing/explore-world.ts', 'ExploreMember'],
    ['src/testing/explore-faults.ts', 'ExploreFaults'],
  ])('%s: has every member of %s', (path, name) => {
    const all = [...members(path, name).keys()]
    expect(all.length).toBeGreaterThan(1)
    const has = (member: string): boolean => said.has(member) || page.includes(`.${member}(`)
    expect(all.filter((member) => !has(member))).toEqual([])
  })

  it('has the example of a test as it runs', () => {
    const [, path = '', shown] = /<!-- example: (\S+) -->\n\n```js\n([\s\S]*?)```/.exec(page) ?? []
    expect(shown).toBe(read(path))
  })

  it('has every kind of request, and no other', () => {
    const type = /export type RequestKind =([\s\S]*?)\n\n/.exec(read('src/testing/faults.ts'))?.[1] ?? ''
    const kinds = [...type.matchAll(/'(\w+)'/g)].map((match) => match[1] ?? '')
    const line = /Kinds: ([\s\S]*?)\n\n/.exec(page)?.[1] ?? ''
    expect(sorted(ticked(line))).toEqual(sorted(kinds))
  })
})

/** GitHub's own rule for the anchor of a heading. */
function anchors(page: string): string[] {
  const headings = [...read(page).matchAll(/^#+ (.*)$/gm)].map((match) => match[1] ?? '')
  return headings.map((text) =>
    text
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

test.each(pages())('the links of %s lead somewhere', (page) => {
  const links = [...read(page).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map((match) => match[1] ?? '')
  const dead = links.filter((link) => {
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? page : resolve(root, dirname(page), path)
    if (!existsSync(resolve(root, target))) return true
    return anchor !== undefined && !anchors(target).includes(anchor)
  })
  expect(dead).toEqual([])
})
