import { NothingToDo, type Fault } from './fault'

/** As in a rolling deploy: it must end by itself, in time, with what runs finished and committed. */
export const term: Fault = {
  name: 'term',
  about: 'SIGTERM of a worker under load',
  resource: 'workers',
  lastsMs: [0, 1_000],
  excuses: { copies: false, stall: false },
  async begin({ crew, log }, chance) {
    const slots = crew.alive
    if (slots.length === 0) throw new NothingToDo('no worker is up')
    const slot = chance.pick(slots)
    log(`term ${slot}`)
    await crew.restart(slot)
    return async () => undefined
  },
}
