/** What kafkajs's admin refuses before it asks the broker, with its words. */
import { KafkaJSNonRetriableError } from './errors'

const refuse = (message: string): never => {
  throw new KafkaJSNonRetriableError(message)
}

/** A value in a message, as a template would write it. */
const text = (value: unknown): string => `${value as string}`

interface NamedTopic {
  topic: string
}

export function checkTopicList(topics: readonly NamedTopic[] | undefined, what: string): void {
  if (!topics || !Array.isArray(topics)) refuse(`Invalid ${what} array ${text(topics)}`)
  const list = topics as readonly NamedTopic[]
  if (list.some(({ topic }) => typeof topic !== 'string')) {
    refuse(`Invalid ${what} array, the topic names have to be a valid string`)
  }
  if (new Set(list.map(({ topic }) => topic)).size < list.length) {
    refuse(`Invalid ${what} array, it cannot have multiple entries for the same topic`)
  }
}

export function checkConfigEntries(topic: string, entries: unknown): void {
  if (entries == null) return
  if (!Array.isArray(entries)) refuse(`Invalid configEntries for topic "${topic}", must be an array`)
  ;(entries as unknown[]).forEach((entry, index) => {
    if (typeof entry !== 'object' || entry === null) {
      refuse(`Invalid configEntries for topic "${topic}". Entry ${index} must be an object`)
    }
    for (const property of ['name', 'value']) {
      if (
        !Object.hasOwn(entry as object, property) ||
        typeof (entry as Record<string, unknown>)[property] !== 'string'
      ) {
        refuse(`Invalid configEntries for topic "${topic}". Entry ${index} must have a valid "${property}" property`)
      }
    }
  })
}

/** Of kafkajs's resource types: UNKNOWN, TOPIC, BROKER, BROKER_LOGGER. */
export const RESOURCE = { UNKNOWN: 0, TOPIC: 2, BROKER: 4, BROKER_LOGGER: 8 } as const

export function checkResources(resources: readonly { type: number; name: string }[] | undefined): void {
  if (!resources || !Array.isArray(resources)) refuse(`Invalid resources array ${text(resources)}`)
  const list = resources as readonly { type: number; name: string }[]
  if (list.length === 0) refuse('Resources array cannot be empty')
  const types: number[] = Object.values(RESOURCE)
  const badType = list.find(({ type }) => !types.includes(type))
  if (badType) refuse(`Invalid resource type ${badType.type}: ${JSON.stringify(badType)}`)
  const badName = list.find(({ name }) => !name || typeof name !== 'string')
  if (badName) refuse(`Invalid resource name ${badName.name}: ${JSON.stringify(badName)}`)
}

export function need(value: unknown, what: string): void {
  if (!value) refuse(`Invalid ${what} ${String(value)}`)
}

export function needName(topic: unknown): void {
  if (!topic || typeof topic !== 'string') refuse(`Invalid topic ${String(topic)}`)
}
