import { expect, test } from 'vitest'
import { FetchManager, type Fetched } from '../../../src/testing/fetch-manager'
import { turn } from '../../helpers/test-clock'
import { hold } from '../consume/given'

test('a stop while the fetchers are made anew ends them: no fetch without end', async () => {
  let nodes = [1, 2]
  let fetches = 0
  const held = hold<void>()
  const manager = new FetchManager<Fetched>({
    concurrency: 1,
    nodeIds: () => nodes,
    async fetch(node) {
      if (++fetches > 1_000) throw new Error('it spins')
      if (node === 2) await held.promise
      else await turn()
      return []
    },
    handle: async () => undefined,
    hurry: () => undefined,
  })
  const started = manager.start()
  await turn()
  nodes = [1]
  for (let i = 0; i < 5; i++) await turn()
  const stopped = manager.stop()
  const before = fetches
  held.resolve()
  await Promise.all([started, stopped])
  expect(fetches).toBe(before)
})
