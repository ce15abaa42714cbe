import { NothingToDo, type Fault } from './fault'

/** The supervisor starts another at once; the session of the dead one runs out, or the new one's join throws it out. */
export const kill: Fault = {
  name: 'kill',
  about: 'SIGKILL of a worker at a random moment',
  resource: 'workers',
  lastsMs: [0, 2_000],
  excuses: { copies: false, stall: false },
  async begin({ crew, log }, chance) {
    const slots = crew.alive
    if (slots.length === 0) throw new NothingToDo('no worker is up')
    const slot = chance.pick(slots)
    log(`kill ${slot}`)
    await crew.kill(slot)
    return async () => undefined
  },
}
