/** What a network does to connections, one node's or all: every worker reaches the brokers through these proxies only. */
import type { Proxy } from '../../helpers/proxy'
import type { Chance } from '../chance'
import type { Fault, World } from './fault'

function overNetwork(
  name: string,
  about: string,
  lastsMs: Fault['lastsMs'],
  spoil: (proxy: Proxy, chance: Chance) => string,
): Fault {
  return {
    name,
    about,
    resource: 'network',
    lastsMs,
    // kafkajs notices a silent connection by its request time-out, which the workers set to 5 s.
    recoveryMs: 25_000,
    excuses: { copies: true, stall: true },
    async begin(world, chance) {
      const proxies = some(world, chance)
      for (const { node, proxy } of proxies) world.log(`node ${node}: ${spoil(proxy, chance)}`)
      return async () => {
        for (const { proxy } of proxies) proxy.restore()
      }
    },
  }
}

/** One node, or all of them. */
function some({ broker, nodes }: World, chance: Chance): { node: number; proxy: Proxy }[] {
  const all = Array.from({ length: nodes }, (_, i) => ({ node: i + 1, proxy: broker.proxy(i + 1) }))
  const one = chance.pick(all)
  return chance.next() < 0.5 ? [one] : all
}

export const networkFaults: readonly Fault[] = [
  overNetwork('net-cut', 'connections are reset, and new ones refused', [200, 8_000], (proxy) => {
    proxy.cut()
    return 'cut off'
  }),
  overNetwork('net-reset', 'connections are reset; new ones are served', [0, 500], (proxy) => {
    proxy.reset()
    return 'connections reset'
  }),
  overNetwork('net-delay', 'every byte comes later', [1_000, 8_000], (proxy, chance) => {
    const ms = chance.between(20, 400)
    proxy.delay(ms)
    return `delayed by ${ms} ms`
  }),
  overNetwork('net-throttle', 'few bytes come through in a second', [1_000, 8_000], (proxy, chance) => {
    const bytes = chance.between(2_000, 40_000)
    proxy.throttle(bytes)
    return `throttled to ${bytes} B/s for each connection and direction`
  }),
  overNetwork('net-half-close', 'the end of the answers, while requests can still be sent', [0, 500], (proxy) => {
    proxy.halfClose()
    return 'half closed'
  }),
  overNetwork('net-hold', 'silence: connections stand, and nothing comes through', [500, 8_000], (proxy) => {
    proxy.hold()
    return 'held'
  }),
  overNetwork('net-mute', 'requests come through, and answers do not', [500, 8_000], (proxy) => {
    proxy.mute()
    return 'muted'
  }),
]
