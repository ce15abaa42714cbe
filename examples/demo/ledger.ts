/** Whether the books balance: each check says what it compared, and what is wrong where something is. */
import type { Delivery, Journal } from './journal'
import type { DeadLetter, Position } from './kafka-side'
import type { Webhook } from './payloads'
import type { Ending, Scenario } from './scenario'

export interface Books {
  readonly webhooks: readonly Webhook[]
  readonly scenario: (id: string) => Scenario
  readonly deliveries: readonly Delivery[]
  /** The server's own count of what it answered with 200. */
  readonly accepted: ReadonlyMap<string, number>
  readonly deadLetters: readonly DeadLetter[]
  readonly positions: readonly Position[]
  readonly retries: Journal['retries']
}

export interface Check {
  readonly what: string
  /** Empty where it holds. */
  readonly faults: readonly string[]
}

export function audit(books: Books): Check[] {
  return [balance(books), exactlyOnce(books), sameBytes(books), neverEarly(books), committed(books), asPlanned(books)]
}

function balance({ webhooks, deliveries, deadLetters }: Books): Check {
  const [produced, delivered, dead] = [webhooks.length, deliveries.length, deadLetters.length]
  const what = `${produced} produced = ${delivered} delivered + ${dead} dead`
  return { what, faults: produced === delivered + dead ? [] : [`that makes ${delivered + dead}`] }
}

function exactlyOnce({ webhooks, accepted, deadLetters }: Books): Check {
  const seen = new Map(accepted)
  for (const { id } of deadLetters) seen.set(id, (seen.get(id) ?? 0) + 1)
  const ids = new Set(webhooks.map(({ id }) => id))
  const faults = [...ids].filter((id) => seen.get(id) !== 1).map((id) => `${id} ended ${seen.get(id) ?? 0} times`)
  for (const id of seen.keys()) if (!ids.has(id)) faults.push(`${id} was never produced`)
  return { what: 'each webhook ended exactly once: accepted by the server, or on the dead letter topic', faults }
}

function sameBytes({ webhooks, deadLetters }: Books): Check {
  const originals = new Map(webhooks.map((webhook) => [webhook.id, webhook]))
  const faults = deadLetters.flatMap(({ id, key, value, headers }) => {
    const original = originals.get(id)
    if (original === undefined) return []
    const differs = [
      ...(key?.equals(original.key) === true ? [] : ['key']),
      ...(value?.equals(original.value) === true ? [] : ['value']),
      ...Object.entries(original.headers)
        .filter(([name, bytes]) => !(Buffer.isBuffer(headers[name]) && bytes.equals(headers[name])))
        .map(([name]) => name),
    ]
    return differs.map((field) => `${id}: ${field} differs`)
  })
  return {
    what: `key, value and headers of all ${deadLetters.length} dead letters are byte for byte those produced`,
    faults,
  }
}

function neverEarly({ retries: { count, early, latestMs } }: Books): Check {
  const faults = early > 0 ? [`${early} started before they were due`] : []
  return { what: `none of ${count} retries started before it was due, and the latest ${latestMs} ms after`, faults }
}

function committed({ positions }: Books): Check {
  const groups = new Set(positions.map(({ group }) => group)).size
  const faults = positions
    .filter(({ committed, end }) => committed !== end && !(committed === '-1' && end === '0'))
    .map(({ group, topic, partition, committed, end }) => `${group}: ${topic}/${partition} at ${committed} of ${end}`)
  return { what: `committed offsets equal the log ends: ${groups} groups, ${positions.length} partitions`, faults }
}

function asPlanned({ webhooks, scenario, deliveries, deadLetters }: Books): Check {
  const endings = new Map<string, string>()
  for (const { id, attempt } of deliveries) endings.set(id, inWords({ kind: 'delivered', attempt }))
  for (const letter of deadLetters) endings.set(letter.id, inWords(endingOf(letter)))
  const faults = webhooks.flatMap(({ id }) => {
    const [is, planned] = [endings.get(id) ?? 'lost', inWords(scenario(id).ending)]
    return is === planned ? [] : [`${id} (${scenario(id).title}): ${is}, not ${planned}`]
  })
  return { what: 'each one ended as the answers of the server ask for', faults }
}

function endingOf({ headers }: DeadLetter): Ending {
  return { kind: 'dead', reason: text(headers['x-failure-reason']), attempt: Number(text(headers['x-attempt'])) }
}

function inWords(ending: Ending): string {
  const at = `at attempt ${ending.attempt}`
  return ending.kind === 'delivered' ? `delivered ${at}` : `dead ${at} (${ending.reason})`
}

export function text(header: unknown): string {
  return Buffer.isBuffer(header) || typeof header === 'string' ? header.toString() : ''
}
