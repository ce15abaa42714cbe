/** Permissions, as Kafka's own tools name them. */
export type AclOperation = 'Read' | 'Write' | 'Describe' | 'DescribeConfigs' | 'Create'
export type AclResource = 'topic' | 'group' | 'transactional-id'

/** The command line that allows it. */
export function allowCommand(
  principal: string | undefined,
  operations: readonly string[],
  resourceType: AclResource,
  names: readonly string[],
): string {
  const parts = [
    'kafka-acls.sh --bootstrap-server "$KAFKA_BROKERS" --add',
    `--allow-principal ${principal === undefined ? '"$PRINCIPAL"' : quoted(principal)}`,
    ...operations.map((operation) => `--operation ${operation}`),
    ...names.map((name) => `--${resourceType} ${quoted(name)}`),
  ]
  return parts.join(' ')
}

function quoted(text: string): string {
  return /^[\w.:@/=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
