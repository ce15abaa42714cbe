import type { Cluster } from './cluster'
import type { GroupDescription } from './types'

/** DescribeGroups of one group, in kafkajs's words. An unknown group is 'Dead', without an error. */
export async function describeGroup(cluster: Cluster, groupId: string): Promise<GroupDescription> {
  const node = await cluster.findGroupCoordinator(groupId)
  return cluster.send(
    { kind: 'admin', api: 'DescribeGroups', label: `description of ${groupId}`, group: groupId, node },
    () => {
      cluster.broker.checkCoordinator(groupId, node)
      const { state, protocol, members } = cluster.broker.coordinator.view(groupId)
      return {
        errorCode: 0,
        groupId,
        state,
        protocolType: state === 'Dead' ? '' : 'consumer',
        protocol,
        members: members.map((member) => ({
          memberId: member.memberId,
          clientId: member.clientId,
          clientHost: '/127.0.0.1',
          memberMetadata: member.metadata,
          memberAssignment: member.assignment,
        })),
      }
    },
  )
}
