/** The bank that the services of the examples charge: an HTTP server whose answers the story decides, and that keeps a list. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Charge {
  readonly order: string
  /** `performance.now()`, ms. */
  readonly at: number
  readonly status: number
}

export interface Bank {
  readonly url: string
  /** Every answer that was given, in order. */
  readonly charges: readonly Charge[]
  /** The next charge of this order is answered 503. */
  refuseOnce(order: string): void
  /** Charges of this order wait for their answer until the returned function is called. */
  hold(order: string): () => void
  /** Resolves once a charge that is held has come. */
  heldNow(order: string): Promise<void>
  close(): Promise<void>
}

export async function openBank(): Promise<Bank> {
  const charges: Charge[] = []
  const refused = new Set<string>()
  const held = new Map<string, { open: Promise<void>; came: () => void; hasCome: Promise<void> }>()

  async function answer(order: string, response: ServerResponse): Promise<void> {
    const hold = held.get(order)
    hold?.came()
    await hold?.open
    const status = refused.delete(order) ? 503 : 200
    charges.push({ order, at: performance.now(), status })
    response.writeHead(status).end()
  }

  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => void answer(Buffer.concat(parts).toString(), response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    charges,
    refuseOnce: (order) => void refused.add(order),
    hold(order) {
      let release = (): void => undefined
      let came = (): void => undefined
      const open = new Promise<void>((resolve) => (release = resolve))
      const hasCome = new Promise<void>((resolve) => (came = resolve))
      held.set(order, { open, came, hasCome })
      return release
    },
    heldNow: async (order) => held.get(order)?.hasCome,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
