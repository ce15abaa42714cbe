/**
 * Authorization taken away for a while, from everybody who has not said who he is: on a plain listener that is every client.
 * The broker must have an authorizer that allows what no rule speaks of (`AUTHORIZED`). Where a rule speaks of a resource, all that
 * none allows is denied: so all is allowed beside what is denied.
 */
import kafkajs, { type AclEntry, type Admin } from 'kafkajs'

// Node finds only some of kafkajs's names by itself.
const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs

/** Properties of a broker on which rights can be taken away. */
export const AUTHORIZED = {
  'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
  'allow.everyone.if.no.acl.found': 'true',
}

const EVERYBODY = { principal: 'User:*', host: '*' }

export interface Right {
  readonly kind: 'topic' | 'group'
  readonly name: string
  readonly operation: 'read' | 'write' | 'describe'
}

const OPERATIONS = {
  read: AclOperationTypes.READ,
  write: AclOperationTypes.WRITE,
  describe: AclOperationTypes.DESCRIBE,
}

/** Resolves with what gives it back. */
export async function revoke(admin: Admin, { kind, name, operation }: Right): Promise<() => Promise<void>> {
  const resource = {
    resourceType: kind === 'topic' ? AclResourceTypes.TOPIC : AclResourceTypes.GROUP,
    resourceName: name,
    resourcePatternType: ResourcePatternTypes.LITERAL,
  }
  const rule = (of: AclEntry['operation'], permissionType: AclEntry['permissionType']): AclEntry => ({
    ...resource,
    ...EVERYBODY,
    operation: of,
    permissionType,
  })
  await admin.createAcls({
    acl: [rule(AclOperationTypes.ALL, AclPermissionTypes.ALLOW), rule(OPERATIONS[operation], AclPermissionTypes.DENY)],
  })
  return async () => {
    await admin.deleteAcls({
      filters: [{ ...resource, operation: AclOperationTypes.ANY, permissionType: AclPermissionTypes.ANY }],
    })
  }
}
