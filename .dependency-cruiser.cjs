// The order of the folders is the order of the data: a stage knows only what stands to its left. Types count too.

const STAGES = [
  'record',
  'ports',
  'envelope',
  'topology',
  'classify',
  'observe',
  'route',
  'deliver',
  'config',
  'consume',
  'dlq',
  'admin',
]

/** Of npm packages, these and no other, each in one stage only. */
const PACKAGES = { zod: 'config', ms: 'topology', 'p-limit': 'consume' }

const CORE_BUILTINS = ['buffer', 'crypto', 'async_hooks', 'events']

const core = `^src/(${STAGES.join('|')}|errors\\.ts$)`
const errors = '^src/errors\\.ts$'

/** Files under `from` may import within src only the folders named, and the error codes. */
const mayImport = (name, from, folders, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: from },
  to: { path: '^src/', pathNot: [...folders.map((folder) => `^src/${folder}/`), errors] },
})

const stages = STAGES.map((stage, at) =>
  mayImport(
    `stage-${stage}`,
    `^src/${stage}/`,
    STAGES.slice(0, at + 1),
    `${stage} may import only what stands to its left: ${STAGES.slice(0, at).join(', ') || 'nothing'}`,
  ),
)

const packages = Object.entries(PACKAGES).map(([name, stage]) => ({
  name: `npm-${name}-only-in-${stage}`,
  severity: 'error',
  from: { path: '^src/', pathNot: `^src/${stage}/` },
  to: { path: `(^|/)node_modules/(@types/)?${name}/` },
}))

module.exports = {
  forbidden: [
    ...stages,
    mayImport('errors-stand-alone', errors, [], 'everyone imports the error codes, so they import no one'),
    mayImport('adapters-know-ports', '^src/adapters/', ['adapters', 'ports', 'record'], 'an adapter only knows ports'),
    // What users get to test their handlers with knows the whole engine; the fake broker under it does not.
    mayImport(
      'testing-knows-ports',
      '^src/testing/(?!kit/)',
      ['testing', 'ports', 'record'],
      'the fake is a peer of adapters',
    ),
    {
      name: 'fake-without-kit',
      comment: 'the fake broker does not know the helpers that are made of it',
      severity: 'error',
      from: { path: '^src/testing/(?!kit/|index\\.ts$)' },
      to: { path: '^src/testing/kit/' },
    },
    {
      name: 'kit-without-front-door',
      comment: 'the front door joins the engine for production; the kit joins its own',
      severity: 'error',
      from: { path: '^src/testing/' },
      to: { path: '^src/(index\\.ts$|cli/)' },
    },
    {
      name: 'front-door-without-testing',
      comment: 'the test kit is an entry of its own, so that production does not load it',
      severity: 'error',
      from: { path: '^src/index\\.ts$' },
      to: { path: '^src/(testing|cli)/' },
    },
    {
      name: 'src-stands-alone',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|bench|examples|scripts)/' },
    },
    ...packages,
    {
      name: 'npm-no-other',
      comment: 'the core uses zod, ms and p-limit; foreign clients are described by the slice we touch, types included',
      severity: 'error',
      from: { path: '^src/' },
      to: {
        path: '(^|/)node_modules/',
        pathNot: `(^|/)node_modules/(@types/)?(${Object.keys(PACKAGES).join('|')})/|(^|/)node_modules/@types/node/`,
      },
    },
    {
      name: 'core-builtins',
      comment: `the core may use only ${CORE_BUILTINS.join(', ')}`,
      severity: 'error',
      from: { path: core },
      to: { dependencyTypes: ['core'], pathNot: `^(node:)?(${CORE_BUILTINS.join('|')})$` },
    },
    { name: 'no-cycles', severity: 'error', from: { path: '^src/' }, to: { circular: true } },
    { name: 'resolvable', severity: 'error', from: { path: '^src/' }, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
}
