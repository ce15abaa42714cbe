/** The service behind the consumer: a local HTTP server that answers as the scenario of each webhook says. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Answer } from './scenario'

export interface FlakyServer {
  readonly url: string
  /** How often each webhook was answered with 200: the server's own books. */
  readonly accepted: ReadonlyMap<string, number>
  close(): Promise<void>
}

/** `decide` is asked at every try (the first is 1) of a webhook. */
export async function startServer(decide: (id: string, tries: number) => Answer): Promise<FlakyServer> {
  const tries = new Map<string, number>()
  const accepted = new Map<string, number>()
  const count = (map: Map<string, number>, id: string): number => {
    const now = (map.get(id) ?? 0) + 1
    map.set(id, now)
    return now
  }

  function respond(request: IncomingMessage, response: ServerResponse): void {
    const id = String(request.headers['x-github-delivery'])
    const answer = decide(id, count(tries, id))
    if (answer.kind === 'reset') request.socket.destroy()
    if (answer.kind !== 'status') return
    if (answer.status === 200) count(accepted, id)
    const wait = answer.retryAfterSeconds
    response.writeHead(answer.status, wait === undefined ? {} : { 'retry-after': `${wait}` }).end()
  }

  const server = createServer((request, response) => {
    request.resume().once('end', () => respond(request, response))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accepted,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
