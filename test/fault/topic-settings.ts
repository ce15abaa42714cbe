/** Settings of a topic, changed for a while. Kafka's own request replaces all of them, so what was set is set again. */
import kafkajs, { type Admin } from 'kafkajs'

// Node finds only some of kafkajs's names by itself.
const { ConfigResourceTypes } = kafkajs

export type Settings = Readonly<Record<string, string>>

/** Kafka's number for "set on the topic itself". */
const ON_TOPIC = 1

/** What is set on the topic itself. */
export async function settingsOf(admin: Admin, topic: string): Promise<Settings> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
  })
  const own = (resources[0]?.configEntries ?? []).filter(
    (entry) => (entry as unknown as { configSource: number }).configSource === ON_TOPIC,
  )
  return Object.fromEntries(own.map(({ configName, configValue }) => [configName, configValue]))
}

export async function setSettings(admin: Admin, topic: string, settings: Settings): Promise<void> {
  const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
  await admin.alterConfigs({
    validateOnly: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
  })
}

/** Sets `changes` beside what is set; resolves with what undoes it. */
export async function changeSettings(admin: Admin, topic: string, changes: Settings): Promise<() => Promise<void>> {
  const before = await settingsOf(admin, topic)
  await setSettings(admin, topic, { ...before, ...changes })
  return () => setSettings(admin, topic, before)
}
