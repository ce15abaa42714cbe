import type { Fault, World } from './fault'
import type { Chance } from '../chance'

/** Every one brings a rebalance of all groups, often while the one before has not ended. */
export const churn: Fault = {
  name: 'churn',
  about: 'members that join and leave every few seconds',
  resource: 'members',
  lastsMs: [4_000, 20_000],
  excuses: { copies: false, stall: false },
  async begin(world, chance) {
    let over = false
    const coming = comeAndGo(world, chance, () => over)
    return async () => {
      over = true
      await coming
    }
  },
}

/** One guest at a time: joins, stays a little, and leaves as a deploy would have it, or dies. */
async function comeAndGo({ crew, log }: World, chance: Chance, over: () => boolean): Promise<void> {
  do {
    const slot = await crew.join()
    const staysMs = chance.between(0, 3_000)
    const hard = chance.next() < 0.3
    await new Promise<void>((resolve) => {
      const leave = (): void => resolve()
      setTimeout(leave, staysMs)
    })
    log(`${slot} leaves${hard ? ' by a kill' : ''}`)
    await crew.leave(slot, hard ? 'SIGKILL' : 'SIGTERM')
  } while (!over())
}
