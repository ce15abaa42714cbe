/** The admin client's part about groups. */
import type { Cluster } from './cluster'
import { describeGroup } from './describe-group'
import { KafkaJSDeleteGroupsError, KafkaJSNonRetriableError, typeOf, type DeleteGroupsResult } from './errors'
import type { Retrier } from './retrier'
import type { GroupDescription } from './types'

export interface AdminGroups {
  listGroups(): Promise<{ groups: { groupId: string; protocolType: string }[] }>
  describeGroups(groupIds: string[]): Promise<{ groups: GroupDescription[] }>
  deleteGroups(groupIds: string[]): Promise<DeleteGroupsResult[]>
}

export function createAdminGroups(cluster: Cluster, retrier: Retrier): AdminGroups {
  const { coordinator } = cluster.broker
  return {
    async listGroups() {
      await cluster.refreshMetadata()
      const groups = []
      for (const node of cluster.getNodeIds()) {
        groups.push(
          ...(await cluster.send({ kind: 'admin', api: 'ListGroups', label: 'list of groups', node }, () =>
            coordinator
              .names()
              .filter((groupId) => cluster.broker.coordinatorOf(groupId) === node)
              .map((groupId) => ({ groupId, protocolType: 'consumer' })),
          )),
        )
      }
      return { groups }
    },

    async describeGroups(groupIds) {
      const groups = await Promise.all(groupIds.map((groupId) => retrier(() => describeGroup(cluster, groupId))))
      return { groups }
    },

    async deleteGroups(groupIds) {
      if (!groupIds || !Array.isArray(groupIds)) {
        throw new KafkaJSNonRetriableError(`Invalid groupIds array ${String(groupIds)}`)
      }
      if (groupIds.some((groupId) => typeof groupId !== 'string')) {
        throw new KafkaJSNonRetriableError('Invalid groupId name: true')
      }
      return retrier(async (bail) => {
        try {
          if (groupIds.length === 0) return []
          await cluster.refreshMetadata()
          const byNode = new Map<number, string[]>()
          for (const groupId of groupIds) {
            const node = await cluster.findGroupCoordinator(groupId)
            byNode.set(node, [...(byNode.get(node) ?? []), groupId])
          }
          const answers = await Promise.all(
            [...byNode].map(([node, own]) =>
              cluster.send(
                { kind: 'admin', api: 'DeleteGroups', label: `deletion of groups ${own.join(', ')}`, node },
                () => own.map((groupId) => coordinator.deleteGroup(groupId)),
              ),
            ),
          )
          const results = answers.flat()
          const failed = results.filter(({ errorCode }) => errorCode !== 0)
          if (failed.length > 0) throw new KafkaJSDeleteGroupsError('Error in DeleteGroups', failed)
          return results
        } catch (e) {
          if (typeOf(e) === 'NOT_CONTROLLER') throw e
          return bail(e)
        }
      })
    },
  }
}
