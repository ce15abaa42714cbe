/** The broker's defaults for what a topic did not set, as Kafka 4.x has them (those of tiered storage left out). */
export const TOPIC_DEFAULTS: Readonly<Record<string, string>> = {
  'cleanup.policy': 'delete',
  'compression.type': 'producer',
  'delete.retention.ms': '86400000',
  'file.delete.delay.ms': '60000',
  'flush.messages': '9223372036854775807',
  'flush.ms': '9223372036854775807',
  'follower.replication.throttled.replicas': '',
  'index.interval.bytes': '4096',
  'leader.replication.throttled.replicas': '',
  'max.compaction.lag.ms': '9223372036854775807',
  'max.message.bytes': '1048588',
  'message.timestamp.after.max.ms': '3600000',
  'message.timestamp.before.max.ms': '9223372036854775807',
  'message.timestamp.type': 'CreateTime',
  'min.cleanable.dirty.ratio': '0.5',
  'min.compaction.lag.ms': '0',
  'min.insync.replicas': '1',
  preallocate: 'false',
  'retention.bytes': '-1',
  'retention.ms': '604800000',
  'segment.bytes': '1073741824',
  'segment.index.bytes': '10485760',
  'segment.jitter.ms': '0',
  'segment.ms': '604800000',
  'unclean.leader.election.enable': 'false',
}

const ONE_OF: Readonly<Record<string, readonly string[]>> = {
  'compression.type': ['uncompressed', 'zstd', 'lz4', 'snappy', 'gzip', 'producer'],
  'message.timestamp.type': ['CreateTime', 'LogAppendTime'],
}
/** Whole numbers that may be below 0, and how far. */
const LOWEST: Readonly<Record<string, bigint>> = { 'retention.ms': -1n, 'retention.bytes': -(2n ** 63n) }

/** Whether the broker takes a setting; what kind of value it wants shows in its default. */
export function isValidSetting(name: string, value: string): boolean {
  if (!Object.hasOwn(TOPIC_DEFAULTS, name)) return false
  const standard = TOPIC_DEFAULTS[name] ?? ''
  if (name === 'cleanup.policy') return value.split(',').every((one) => ['delete', 'compact'].includes(one.trim()))
  if (name === 'min.cleanable.dirty.ratio') return value.trim() !== '' && Number(value) >= 0 && Number(value) <= 1
  if (standard === 'true' || standard === 'false') return ['true', 'false'].includes(value.toLowerCase())
  if (/^-?\d+$/.test(standard)) return /^-?\d+$/.test(value) && BigInt(value) >= (LOWEST[name] ?? 0n)
  return ONE_OF[name]?.includes(value) ?? true
}
