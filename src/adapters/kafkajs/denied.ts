/**
 * What to tell of a request that the cluster has refused for want of a permission. kafkajs's error says neither what was
 * asked for nor by whom (`Not authorized to access topics: [Topic authorization failed]`); who asked knows the first, and
 * the client's own settings mostly tell the second.
 */
import { ForbiddenError, type Forbidden } from '../../errors'
import { allowCommand, type AclOperation } from '../../ports'
import { errorType } from './errors'
import type { ClusterLike, KafkaJsLike } from './kafkajs-like'

export interface Asked {
  readonly operation: AclOperation
  readonly resourceType: Forbidden['resourceType']
  readonly names: readonly string[]
}

const RESOURCE_OF: Readonly<Record<string, Forbidden['resourceType']>> = {
  TOPIC_AUTHORIZATION_FAILED: 'topic',
  GROUP_AUTHORIZATION_FAILED: 'group',
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 'transactional-id',
}
/** Kafka's number for the kind of a coordinator; nothing else has one. */
const COORDINATOR = { group: 0, 'transactional-id': 1 }
/** So many names are told: the whole must fit a log line. */
const NAMED = 3

/** The resource whose permission is missing; undefined where it is not that. */
export function deniedType(error: unknown): Forbidden['resourceType'] | undefined {
  return RESOURCE_OF[errorType(error) ?? '']
}

export interface Denials {
  /**
   * The error itself where no permission is missing. Where it is that no node tells the coordinator of what was asked
   * for, a node is asked why.
   */
  explain(error: unknown, asked: readonly Asked[]): Promise<unknown>
  /** The same for who cannot wait; names the principal once a cluster of this client has been seen. */
  explainNow(error: unknown, asked: readonly Asked[]): unknown
  /** Looks at the settings of the client that a cluster was made by. */
  see(cluster: ClusterLike): Promise<void>
}

export function createDenials(kafka: KafkaJsLike): Denials {
  let principal: string | undefined
  let seen: Promise<void> | undefined

  function see(cluster: ClusterLike): Promise<void> {
    return (seen ??= principalOf(cluster).then((found) => {
      principal = found
    }))
  }

  function explainNow(error: unknown, asked: readonly Asked[]): unknown {
    const what = asked.find(({ resourceType }) => resourceType === deniedType(error))
    return what === undefined ? error : forbidden(error, what, principal)
  }

  return {
    see,
    explainNow,
    async explain(error, asked) {
      if (isCoordinatorNotTold(error)) {
        const cluster = clusterOf(kafka)
        await see(cluster)
        const denied = await connected(cluster as Asker, () => anyCoordinatorDenied(cluster, asked))
        return denied === undefined ? error : explainNow(denied, asked)
      }
      if (deniedType(error) === undefined) return error
      if (seen === undefined) await see(clusterOf(kafka))
      await seen
      return explainNow(error, asked)
    },
  }
}

const isCoordinatorNotTold = (error: unknown): boolean =>
  (error as { name?: unknown } | null)?.name === 'KafkaJSGroupCoordinatorNotFound'

function forbidden(cause: unknown, { operation, resourceType, names }: Asked, principal: string | undefined): unknown {
  const told = names.slice(0, NAMED).map((name) => `'${name}'`)
  if (names.length > NAMED) told.push(`${names.length - NAMED} more`)
  const resource = `${resourceType.replace('-', ' ')} ${told.join(' or ')}`
  const command = commandFor(principal, { operation, resourceType, names })
  const message = `${principal ?? "the client's principal"} may not ${operation} ${resource}; allow it: ${command}`
  return new ForbiddenError(message, { operation, resourceType, resources: names, principal, command }, { cause })
}

/** A group has as many transactional ids as partitions, `<group>/...`: one command allows them all. */
function commandFor(principal: string | undefined, { operation, resourceType, names }: Asked): string {
  const groups = names.map((name) => /^[^/]+\//.exec(name)?.[0])
  if (resourceType !== 'transactional-id' || groups.includes(undefined)) {
    return allowCommand(principal, [operation], resourceType, names)
  }
  const prefixes = [...new Set(groups as string[])]
  return `${allowCommand(principal, [operation], resourceType, prefixes)} --resource-pattern-type prefixed`
}

/** A client keeps its settings to itself, but makes its clusters by them. Nothing is connected. */
function clusterOf(kafka: KafkaJsLike): ClusterLike {
  let found: ClusterLike | undefined
  const nobody = { name: 'nobody', version: 0, assign: () => Promise.resolve([]), protocol: undefined as never }
  try {
    kafka.consumer({
      groupId: 'retryline',
      partitionAssigners: [
        ({ cluster }) => {
          found = cluster
          return nobody
        },
      ],
    })
  } catch {
    // Then it is told without the name.
  }
  return found ?? ({} as ClusterLike)
}

interface Inner {
  connectionPoolBuilder?: {
    build(where: { host: string; port: number }): Promise<{ ssl?: unknown; sasl?: { username?: unknown } | null }>
  }
}

/**
 * The user whom the broker sees, as far as the client's settings say: the user name of SASL, and nobody in particular where
 * there is neither SASL nor TLS. It lies in a part of kafkajs that is not public, so whatever is not there is no error.
 */
async function principalOf(cluster: ClusterLike): Promise<string | undefined> {
  try {
    // With a host it neither asks for the brokers nor connects to any.
    const pool = await (cluster as Inner).connectionPoolBuilder?.build({ host: 'nowhere', port: 1 })
    if (pool === undefined) return undefined
    if (typeof pool.sasl?.username === 'string') return `User:${pool.sasl.username}`
    return pool.sasl || pool.ssl ? undefined : 'User:ANONYMOUS'
  } catch {
    return undefined
  }
}

/** A connection of its own, for one question; undefined where that fails. */
async function connected<T>(cluster: Asker, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    await cluster.connect?.()
    await cluster.refreshMetadata?.()
    return await ask()
  } catch {
    return undefined
  } finally {
    await cluster.disconnect?.().catch(() => undefined)
  }
}

interface Asker {
  connect?(): Promise<void>
  disconnect?(): Promise<void>
  refreshMetadata?(): Promise<void>
  findControllerBroker?(): Promise<{
    findGroupCoordinator?(about: { groupId: string; coordinatorType: number }): Promise<unknown>
  }>
}

/**
 * kafkajs swallows why no node tells it the coordinator of a group, or of a transactional id. Asked of one node directly, it
 * is the error of a missing permission, or undefined where it is anything else.
 */
export async function coordinatorDenied(
  cluster: ClusterLike,
  name: string,
  type: 'group' | 'transactional-id' = 'group',
): Promise<unknown> {
  try {
    const broker = await (cluster as Asker).findControllerBroker?.()
    await broker?.findGroupCoordinator?.({ groupId: name, coordinatorType: COORDINATOR[type] })
    return undefined
  } catch (error) {
    return deniedType(error) === type ? error : undefined
  }
}

async function anyCoordinatorDenied(cluster: ClusterLike, asked: readonly Asked[]): Promise<unknown> {
  for (const { resourceType, names } of asked) {
    if (resourceType === 'topic') continue
    for (const name of names) {
      const denied = await coordinatorDenied(cluster, name, resourceType)
      if (denied !== undefined) return denied
    }
  }
  return undefined
}
