import tseslint from 'typescript-eslint'

const OFFSET = '[name=/offset/i]'
const TO_NUMBER = 'CallExpression[callee.name=/^(Number|parseInt|parseFloat)$/]'
const NUMBER_PARSE = "CallExpression[callee.object.name='Number'][callee.property.name=/^parse(Int|Float)$/]"
const PROMISE = "NewExpression[callee.name='Promise']"
const TIMER = "CallExpression[callee.name='setTimeout']"

const exactOffset = 'An offset is a bigint: a number loses digits past 2^53. Use BigInt().'
const noClock = 'Time is an argument: take a Clock from src/ports.'
const noChance = 'Chance is an argument: take a Random from src/ports.'
const noSleep = 'Await a named event, never sleep; helpers for it are in test/helpers.'
const noGlob = 'Name what leaves a module: `export *` makes a public API by accident.'

const inAllSources = [
  ...[TO_NUMBER, NUMBER_PARSE, "UnaryExpression[operator='+']"].flatMap((toNumber) => [
    { selector: `${toNumber} Identifier${OFFSET}`, message: exactOffset },
    { selector: `${toNumber} Literal[value=/offset/i]`, message: exactOffset },
  ]),
  { selector: 'ExportAllDeclaration', message: noGlob },
]

const clockGlobals = ['setTimeout', 'setInterval', 'setImmediate', 'performance']

const outsideThePorts = [
  { selector: "MemberExpression[object.name='Date'][property.name='now']", message: noClock },
  { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: noClock },
  { selector: "CallExpression[callee.name='Date']", message: noClock },
  { selector: "MemberExpression[object.name='performance']", message: noClock },
  { selector: "MemberExpression[object.name='process'][property.name='hrtime']", message: noClock },
  { selector: "MemberExpression[object.name='AbortSignal'][property.name='timeout']", message: noClock },
  {
    selector: `MemberExpression[object.name='globalThis'][property.name=/^(Date|${clockGlobals.join('|')})$/]`,
    message: noClock,
  },
  { selector: "MemberExpression[object.name='Math'][property.name='random']", message: noChance },
]

const inTests = [
  {
    selector: "MemberExpression[object.name=/^(describe|it|test|suite|bench)$/][property.name='only']",
    message: 'A focused test hides all others.',
  },
]

const sleeping = [
  `${PROMISE} > ArrowFunctionExpression > ${TIMER}.body`,
  `${PROMISE} > :function > BlockStatement[body.length=1] > ExpressionStatement > ${TIMER}`,
].map((selector) => ({ selector, message: noSleep }))

const rule = (...selectors) => ({ 'no-restricted-syntax': ['error', ...selectors] })

export default tseslint.config(
  { ignores: ['dist/', 'coverage/', '.cache/', 'node_modules/', '**/*.js', '**/*.cjs', '**/*.mjs'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // A handler's type is async: one that has nothing to await is still right.
      '@typescript-eslint/require-await': 'off',
      // Our factories return closures, which need no `this`; the rule cannot tell them from methods of a class.
      '@typescript-eslint/unbound-method': 'off',
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-var': 'error',
      'prefer-const': 'error',
      'no-console': 'error',
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: rule(...inAllSources, ...outsideThePorts),
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/ports/**', 'src/testing/clock.ts', 'src/testing/clock/**'],
    rules: {
      'no-restricted-globals': ['error', ...clockGlobals.map((name) => ({ name, message: noClock }))],
      'no-restricted-imports': [
        'error',
        {
          paths: [
            'timers',
            'node:timers',
            'timers/promises',
            'node:timers/promises',
            'perf_hooks',
            'node:perf_hooks',
          ].map((name) => ({ name, message: noClock })),
        },
      ],
    },
  },
  {
    files: ['src/ports/**/*.ts', 'src/testing/clock.ts', 'src/testing/clock/**/*.ts'],
    rules: rule(...inAllSources),
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      ...rule(...inTests, ...sleeping),
      'no-restricted-imports': [
        'error',
        { paths: ['timers/promises', 'node:timers/promises'].map((name) => ({ name, message: noSleep })) },
      ],
    },
  },
  {
    files: ['test/helpers/**/*.ts'],
    rules: { ...rule(...inTests), 'no-restricted-imports': 'off' },
  },
  {
    // What is thrown, mistyped or left dangling here is often the very thing under test.
    files: ['test/**/*.ts', 'bench/**/*.ts', 'examples/**/*.ts', 'scripts/**/*.ts'],
    rules: {
      '@typescript-eslint/no-explicit-any': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/only-throw-error': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
    },
  },
  {
    files: ['bench/**/*.ts', 'examples/**/*.ts', 'scripts/**/*.ts', 'test/helpers/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
)
