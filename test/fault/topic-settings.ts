/** Settings of a topic, changed for a while. Kafka's own request replaces all of them, so what was set is set again. */
import kafkajs, { type Admin } from 'kafkajs'
import { until } from './until'

// Node finds only some of kafkajs's names by itself.
const { ConfigResourceTypes } = kafkajs

export type Settings = Readonly<Record<string, string>>

/** Kafka's number for "set on the topic itself". */
const ON_TOPIC = 1

/** For a node to come back, ms. */
const PATIENCE = 60_000

/** What is set on the topic itself. */
export async function settingsOf(admin: Admin, topic: string): Promise<Settings> {
  const { resources } = await stubbornly(() =>
    admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
    }),
  )
  const own = (resources[0]?.configEntries ?? []).filter(
    (entry) => (entry as unknown as { configSource: number }).configSource === ON_TOPIC,
  )
  return Object.fromEntries(own.map(({ configName, configValue }) => [configName, configValue]))
}

export async function setSettings(admin: Admin, topic: string, settings: Settings): Promise<void> {
  const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
  await stubbornly(() =>
    admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
    }),
  )
}

/** Another fault may have the node away that is asked. */
async function stubbornly<T>(ask: () => Promise<T>): Promise<T> {
  let answer: { readonly is: T } | undefined
  let why: unknown
  const asked = async (): Promise<boolean> => {
    answer = await ask().then(
      (is) => ({ is }),
      (error: unknown) => void (why = error),
    )
    return answer !== undefined
  }
  await until('the node that is asked answers', asked, PATIENCE).catch((error: unknown) => {
    throw why ?? error
  })
  return answer!.is
}

/** Sets `changes` beside what is set; resolves with what undoes it. */
export async function changeSettings(admin: Admin, topic: string, changes: Settings): Promise<() => Promise<void>> {
  const before = await settingsOf(admin, topic)
  await setSettings(admin, topic, { ...before, ...changes })
  return () => setSettings(admin, topic, before)
}
