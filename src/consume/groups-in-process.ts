/**
 * Two consumers of one group in one process are nearly always a mistake (a module loaded twice, a hot reload), and with
 * kafkajs a harmful one: consumers of one client and group share the map of committed offsets. So they are refused.
 *
 * The list hangs on globalThis under a registered symbol: the ESM and the CJS build of this package, or two copies of
 * it, must see each other's.
 */
import { RetrylineError } from '../errors'

const KEY: unique symbol = Symbol.for('retryline.groups') as never

function taken(): Set<string> {
  const holder = globalThis as { [KEY]?: Set<string> }
  return (holder[KEY] ??= new Set())
}

/** Returns the function that gives the groups back; throws RETRYLINE_GROUP_IN_USE and takes none where one is taken. */
export function takeGroups(cluster: string, groups: readonly string[]): () => void {
  const all = taken()
  const keys = groups.map((group) => `${cluster}\u0000${group}`)
  const at = keys.findIndex((key) => all.has(key))
  if (at >= 0) {
    throw new RetrylineError(
      'RETRYLINE_GROUP_IN_USE',
      `groupId: '${groups[at]}' is already consumed by this process on this cluster; stop that consumer first, give this ` +
        `one another groupId, or, where two members in one process are meant, set sameGroupInProcess: 'allow' on both ` +
        `and give each a Kafka client of its own`,
    )
  }
  for (const key of keys) all.add(key)
  return () => {
    for (const key of keys) all.delete(key)
  }
}
