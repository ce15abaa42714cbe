/** `kafka.admin()`: kafkajs's admin client over the fake broker. What only looks and what changes topics is here. */
import { createAdminGroups, type AdminGroups } from './admin-groups'
import { createAdminOffsets, type AdminOffsets } from './admin-offsets'
import { checkConfigEntries, checkResources, checkTopicList, needName, RESOURCE } from './admin-checks'
import { Cluster, type ClientContext } from './cluster'
import { KafkaJSAggregateError, KafkaJSCreateTopicError, KafkaJSNonRetriableError, notFaked, typeOf } from './errors'
import type { ProtocolErrorType } from './error-codes'
import { ADMIN_EVENTS, Instrumentation, type On } from './events'
import { silentKafkaLogger } from './logger'
import { createRetrier, type RetryOptions } from './retrier'
import { TOPIC_DEFAULTS } from './topic-settings'
import type { FakeLogger, PartitionMetadata } from './types'

const { CONNECT, DISCONNECT } = ADMIN_EVENTS

interface NewTopic {
  topic: string
  numPartitions?: number
  replicationFactor?: number
  replicaAssignment?: unknown[]
  configEntries?: { name: string; value: string }[]
}

interface ConfigEntry {
  configName: string
  configValue: string
  isDefault: boolean
  configSource: number
  isSensitive: boolean
  readOnly: boolean
  configSynonyms: { configName: string; configValue: string; configSource: number }[]
}

interface ConfigDescription {
  resources: {
    configEntries: ConfigEntry[]
    errorCode: number
    errorMessage: string
    resourceName: string
    resourceType: number
  }[]
  throttleTime: number
}

export interface FakeAdmin extends AdminOffsets, AdminGroups {
  connect(): Promise<void>
  disconnect(): Promise<void>
  listTopics(): Promise<string[]>
  createTopics(options: {
    topics: NewTopic[]
    validateOnly?: boolean
    waitForLeaders?: boolean
    timeout?: number
  }): Promise<boolean>
  deleteTopics(options: { topics: string[]; timeout?: number }): Promise<void>
  createPartitions(options: {
    topicPartitions: { topic: string; count: number; assignments?: number[][] }[]
    validateOnly?: boolean
    timeout?: number
  }): Promise<boolean>
  fetchTopicMetadata(options?: {
    topics: string[]
  }): Promise<{ topics: { name: string; partitions: PartitionMetadata[] }[] }>
  describeCluster(): Promise<{
    brokers: { nodeId: number; host: string; port: number }[]
    controller: number | null
    clusterId: string
  }>
  describeConfigs(configs: {
    resources: { type: number; name: string; configNames?: string[] }[]
    includeSynonyms: boolean
  }): Promise<ConfigDescription>
  alterConfigs(configs: {
    resources: { type: number; name: string; configEntries: { name: string; value: string }[] }[]
    validateOnly: boolean
  }): Promise<unknown>
  describeAcls(options: unknown): Promise<never>
  deleteAcls(options: unknown): Promise<never>
  createAcls(options: unknown): Promise<never>
  alterPartitionReassignments(request: unknown): Promise<never>
  listPartitionReassignments(request: unknown): Promise<never>
  on: On
  logger(): FakeLogger
  readonly events: typeof ADMIN_EVENTS
}

/** Where a setting comes from, in kafkajs's numbers. */
const TOPIC_CONFIG = 1
const DEFAULT_CONFIG = 5

export function createFakeAdmin(context: ClientContext, config: { retry?: RetryOptions } = {}): FakeAdmin {
  const { broker } = context
  const { topics: store } = broker
  const cluster = new Cluster(context)
  const events = new Instrumentation(broker.clock, 'admin', ADMIN_EVENTS)
  const logger = silentKafkaLogger()
  const retrier = createRetrier(broker.clock, { ...context.retry, ...config.retry })

  const ask = <T>(api: string, topics: readonly string[], act: () => T): Promise<T> =>
    cluster.sendToController(
      { kind: 'admin', api, label: `${api} of ${topics.join(', ')}`, topics: topics.map(named) },
      act,
    )

  /** Asks as kafkajs does: old metadata first, and only a controller that moved is worth another try. */
  const controller = <T>(act: () => Promise<T>, again: readonly string[] = ['NOT_CONTROLLER']): Promise<T> =>
    retrier(async (bail) => {
      try {
        await cluster.refreshMetadata()
        return await act()
      } catch (e) {
        if (again.includes(typeOf(e) ?? '')) throw e
        return bail(e)
      }
    })

  function entriesOf(name: string, wanted: readonly string[] | null | undefined, synonyms: boolean): ConfigEntry[] {
    const topic = store.get(name)
    const names = Object.keys(TOPIC_DEFAULTS).filter(
      (key) => wanted == null || wanted.length === 0 || wanted.includes(key),
    )
    return names.map((configName) => {
      const isDefault = !topic.config.has(configName)
      const configValue = store.setting(topic, configName)
      const configSource = isDefault ? DEFAULT_CONFIG : TOPIC_CONFIG
      const configSynonyms = synonyms ? [{ configName, configValue, configSource }] : []
      return { configName, configValue, readOnly: false, isDefault, configSource, isSensitive: false, configSynonyms }
    })
  }

  function refused(topic: string, act: () => void): KafkaJSCreateTopicError | undefined {
    try {
      act()
      return undefined
    } catch (e) {
      return new KafkaJSCreateTopicError(typeOf(e) as ProtocolErrorType, topic)
    }
  }

  return {
    async connect() {
      await cluster.connect()
      events.emit(CONNECT)
    },
    async disconnect() {
      await cluster.disconnect()
      events.emit(DISCONNECT)
    },
    listTopics: async () => [...(await cluster.fetchMetadata([])).keys()],

    async createTopics({ topics, validateOnly = false }) {
      checkTopicList(topics, 'topics')
      for (const { topic, configEntries } of topics) checkConfigEntries(topic, configEntries)
      if (topics.some(({ replicaAssignment }) => replicaAssignment?.length)) throw notFaked('replicaAssignment')
      const create = (): Promise<void> =>
        ask(
          'CreateTopics',
          topics.map(({ topic }) => topic),
          () => {
            const errors = topics.map(({ topic, numPartitions, replicationFactor, configEntries = [] }) =>
              refused(topic, () =>
                store.create(topic, {
                  ...(numPartitions === undefined || numPartitions === -1 ? {} : { partitions: numPartitions }),
                  ...(replicationFactor === undefined || replicationFactor === -1 ? {} : { replicationFactor }),
                  config: Object.fromEntries(configEntries.map(({ name, value }) => [name, value])),
                  validateOnly,
                }),
              ),
            )
            const failed = errors.filter((error) => error !== undefined)
            failed.sort((a, b) => a.topic.localeCompare(b.topic))
            if (failed.length > 0) throw new KafkaJSAggregateError('Topic creation errors', failed)
          },
        )
      return controller(async () => {
        try {
          await create()
          return true
        } catch (e) {
          const { errors } = e as { errors?: Error[] }
          if (errors?.every((error) => typeOf(error) === 'TOPIC_ALREADY_EXISTS')) return false
          throw e
        }
      })
    },

    async deleteTopics({ topics }) {
      if (!topics || !Array.isArray(topics)) {
        throw new KafkaJSNonRetriableError(`Invalid topics array ${String(topics)}`)
      }
      if (topics.some((topic) => typeof topic !== 'string')) {
        throw new KafkaJSNonRetriableError('Invalid topics array, the names must be a valid string')
      }
      await controller(async () => {
        await ask('DeleteTopics', topics, () => {
          let failed: unknown
          for (const topic of topics) {
            try {
              store.delete(topic)
              broker.coordinator.forgetTopic(topic)
            } catch (e) {
              failed ??= e
            }
          }
          broker.wakePolls()
          if (failed !== undefined) throw failed as Error
        })
        for (const topic of topics) cluster.targetTopics.delete(topic)
        await cluster.refreshMetadata()
      }, ['NOT_CONTROLLER', 'UNKNOWN_TOPIC_OR_PARTITION'])
    },

    async createPartitions({ topicPartitions, validateOnly = false }) {
      checkTopicList(topicPartitions, 'topic partitions')
      if (topicPartitions.length === 0) throw new KafkaJSNonRetriableError('Empty topic partitions array')
      await controller(() =>
        ask(
          'CreatePartitions',
          topicPartitions.map(({ topic }) => topic),
          () => {
            let failed: unknown
            for (const { topic, count } of topicPartitions) {
              try {
                store.grow(topic, count, validateOnly)
              } catch (e) {
                failed ??= e
              }
            }
            if (failed !== undefined) throw failed as Error
          },
        ),
      )
      // kafkajs declares a boolean and answers nothing.
      return undefined as unknown as boolean
    },

    async fetchTopicMetadata({ topics = [] } = { topics: [] }) {
      topics.forEach(needName)
      const found = await cluster.fetchMetadata(topics)
      return { topics: [...found].map(([name, partitions]) => ({ name, partitions })) }
    },

    async describeCluster() {
      await cluster.fetchMetadata([])
      return { brokers: store.nodes(), controller: broker.nodes.controller, clusterId: 'retryline-fake' }
    },

    async describeConfigs({ resources, includeSynonyms }) {
      checkResources(resources)
      const bad = resources.find(({ configNames }) => configNames != null && !Array.isArray(configNames))
      if (bad) {
        throw new KafkaJSNonRetriableError(
          `Invalid resource configNames ${String(bad.configNames)}: ${JSON.stringify(bad)}`,
        )
      }
      if (resources.some(({ type }) => type !== RESOURCE.TOPIC)) throw notFaked('the configuration of a broker')
      const names = resources.map(({ name }) => name)
      return controller(async () => {
        const described = await ask('DescribeConfigs', names, () =>
          resources.map(({ name, configNames }) => ({
            errorCode: 0,
            errorMessage: '',
            resourceType: RESOURCE.TOPIC,
            resourceName: name,
            configEntries: entriesOf(name, configNames, includeSynonyms),
          })),
        )
        // kafkajs declares a throttleTime and does not answer one.
        return { resources: described } as ConfigDescription
      })
    },

    async alterConfigs({ resources, validateOnly }) {
      checkResources(resources)
      if (resources.some(({ type }) => type !== RESOURCE.TOPIC)) throw notFaked('the configuration of a broker')
      const names = resources.map(({ name }) => name)
      return controller(async () => {
        await ask('AlterConfigs', names, () => {
          for (const { name, configEntries } of resources) {
            store.configure(name, Object.fromEntries(configEntries.map((e) => [e.name, e.value])), validateOnly)
          }
        })
        return {
          resources: names.map((resourceName) => ({ errorCode: 0, errorMessage: null, resourceName, resourceType: 2 })),
        }
      })
    },

    ...createAdminOffsets(cluster, retrier),
    ...createAdminGroups(cluster, retrier),

    describeAcls: async () => Promise.reject(notFaked('admin.describeAcls')),
    deleteAcls: async () => Promise.reject(notFaked('admin.deleteAcls')),
    createAcls: async () => Promise.reject(notFaked('admin.createAcls')),
    alterPartitionReassignments: async () => Promise.reject(notFaked('admin.alterPartitionReassignments')),
    listPartitionReassignments: async () => Promise.reject(notFaked('admin.listPartitionReassignments')),
    on: events.on,
    logger: () => logger,
    events: ADMIN_EVENTS,
  }
}

const named = (topic: string): { topic: string } => ({ topic })
