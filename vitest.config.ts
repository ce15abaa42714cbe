import { defineConfig } from 'vitest/config'

/**
 * A test that needs a real broker lives in test/broker or test/fault, or is named `*.real.test.ts` anywhere else
 * (a contract's real half stands beside its fake half). All others must pass on a machine with nothing but Node.
 */
const needsBroker = ['test/broker/**/*.test.ts', 'test/**/*.real.test.ts']
const needsOwnBrokers = ['test/fault/**/*.test.ts']
const globalSetup = ['test/helpers/broker.setup.ts']

export default defineConfig({
  test: {
    allowOnly: false,
    projects: [
      {
        test: {
          name: 'offline',
          include: ['test/{unit,flow,contract,cases,traps,architecture,golden,helpers,explore}/**/*.test.ts'],
          exclude: [...needsBroker, ...needsOwnBrokers],
          sequence: { groupOrder: 0 },
          maxWorkers: 2,
          // Not a hope that slow tests pass: a property test on a busy machine takes a few seconds.
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'types',
          include: [],
          // Faults of other files are the typecheck's business: here they would fail every type test at once.
          typecheck: {
            enabled: true,
            only: true,
            ignoreSourceErrors: true,
            include: ['test/types/**/*.test-d.ts'],
            tsconfig: 'tsconfig.json',
          },
          sequence: { groupOrder: 1 },
          maxWorkers: 1,
        },
      },
      // Three files at a time: most of them wait for sessions, retries and rebalances. More would starve the broker, which makes
      // false alarms.
      {
        test: {
          name: 'broker',
          include: needsBroker,
          exclude: needsOwnBrokers,
          globalSetup,
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
          testTimeout: 60_000,
          hookTimeout: 120_000,
          // kafkajs has races of its own, and the machine may be busy. What needs its second try is named at CI's end.
          retry: 1,
        },
      },
      // One at a time: they start, kill and starve brokers and processes of their own.
      {
        test: {
          name: 'fault',
          include: needsOwnBrokers,
          globalSetup,
          fileParallelism: false,
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
})
