/** The input: the real webhooks of GitHub that octokit collects, as the records that a receiver would produce. */
import { createHash, createHmac } from 'node:crypto'
import { createRequire } from 'node:module'

export interface Webhook {
  /** What GitHub sends as X-GitHub-Delivery: one for each. Made from the content, so that every run is the same. */
  readonly id: string
  /** The kind of event: `push`, `issues` and so on. */
  readonly kind: string
  readonly key: Buffer
  readonly value: Buffer
  readonly headers: Readonly<Record<string, Buffer>>
}

interface Definition {
  readonly name: string
  readonly examples: readonly object[]
}

const SECRET = 'it is only a demo'

export function webhooks(): Webhook[] {
  const definitions = createRequire(import.meta.url)('@octokit/webhooks-examples') as Definition[]
  return definitions.flatMap(({ name, examples }) => examples.map((payload, at) => toWebhook(name, payload, at)))
}

function toWebhook(kind: string, payload: object, at: number): Webhook {
  const value = Buffer.from(JSON.stringify(payload))
  const id = createHash('sha256').update(`${kind} ${at}`).update(value).digest('hex').slice(0, 32)
  const headers = {
    'x-github-event': Buffer.from(kind),
    'x-github-delivery': Buffer.from(id),
    'content-type': Buffer.from('application/json'),
    // 32 raw bytes, most of them no text in any encoding: a header that a careless copy would damage.
    'x-signature': createHmac('sha256', SECRET).update(value).digest(),
  }
  return { id, kind, key: Buffer.from(kind), value, headers }
}

/** Which webhook a record carries; undefined where it is none of ours. */
export function deliveryOf(headers: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const id = headers?.['x-github-delivery']
  return Buffer.isBuffer(id) || typeof id === 'string' ? id.toString() : undefined
}
