import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from './broker-ports'

/**
 * A TCP proxy in front of a broker, to do to a connection what networks do. The broker must advertise `port`
 * (`startBroker({ proxied: true })` arranges it), or clients walk around the proxy.
 */
export interface Proxy {
  readonly port: number
  /** Live connections, both ends. */
  readonly connections: number
  /** Bytes of answers that `mute()` has thrown away so far. */
  readonly dropped: number
  /** Where to forward to; connections that wait for it go on. */
  to(port: number): void
  /** Resets every connection, and every new one, until `restore()`. */
  cut(): void
  /** Resets the connections there are; new ones are served. */
  reset(): void
  /** Holds all bytes back, both ways, until `restore()`; connections stay open. */
  hold(): void
  /** Requests go through, answers are thrown away, until `restore()`: what was acknowledged is never known. */
  mute(): void
  /** Passes each chunk on `ms` later, both ways, in order. */
  delay(ms: number): void
  /** Lets so many bytes through in a second, of each connection and direction. */
  throttle(bytesPerSecond: number): void
  /** Ends the broker's side of each connection as seen by the client: it may still write, and nothing comes back. */
  halfClose(): void
  /** Undoes all of these. A connection that was muted is reset: bytes are missing in its stream. */
  restore(): void
  stop(): Promise<void>
}

type State = 'open' | 'cut' | 'held' | 'muted'

export async function startProxy(options: { port?: number; to?: number } = {}): Promise<Proxy> {
  const port = options.port ?? (await freePort())
  let target = options.to
  let state: State = 'open'
  let latency = 0
  let rate = Infinity
  let dropped = 0
  const links = new Set<{ client: Socket; broker: Socket; muted: boolean }>()
  let wake: (() => void)[] = []

  const wakeAll = (): void => {
    const waiting = wake
    wake = []
    for (const go of waiting) go()
  }
  const changed = (): Promise<void> => new Promise((resolve) => wake.push(resolve))
  const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

  const accept = async (client: Socket): Promise<void> => {
    client.on('error', () => client.destroy())
    client.pause()
    if (state === 'cut') return void client.resetAndDestroy()
    while (target === undefined || state === 'held') {
      await changed()
      if (client.destroyed) return
    }
    const broker = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
    const link = { client, broker, muted: false }
    links.add(link)
    const close = (): void => {
      links.delete(link)
      client.destroy()
      broker.destroy()
      wakeAll()
    }
    broker.on('error', close)
    for (const socket of [client, broker]) socket.on('close', close)

    const pipe = (from: Socket, to: Socket): void => {
      let turn: Promise<void> = Promise.resolve()
      const inOrder = (step: () => void, bytes = 0): void => {
        turn = turn.then(async () => {
          if (latency > 0) await later(latency)
          // A slow line is slow for what waits behind too; what is restored lets all of it go at once.
          for (let left = bytes; left > 0 && rate < Infinity && links.has(link); left -= rate / 20) await later(50)
          while (state === 'held' && links.has(link)) await changed()
          if (links.has(link) && to.writable) step()
        })
      }
      from.on('data', (chunk) =>
        inOrder(() => {
          if (state === 'muted' && from === broker) {
            link.muted = true
            dropped += chunk.length
          } else to.write(chunk)
        }, chunk.length),
      )
      from.on('end', () => inOrder(() => to.end()))
    }
    pipe(client, broker)
    pipe(broker, client)
    client.resume()
  }

  const server: Server = createServer({ allowHalfOpen: true }, (client) => void accept(client))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })

  const reset = (which: (link: { muted: boolean }) => boolean): void => {
    for (const link of links) if (which(link)) link.client.resetAndDestroy()
  }
  const enter = (next: State): void => {
    state = next
    wakeAll()
  }

  return {
    port,
    get connections() {
      return links.size
    },
    get dropped() {
      return dropped
    },
    to(next) {
      target = next
      wakeAll()
    },
    cut() {
      enter('cut')
      reset(() => true)
    },
    reset: () => reset(() => true),
    hold: () => enter('held'),
    mute: () => enter('muted'),
    delay(ms) {
      latency = ms
    },
    throttle(bytesPerSecond) {
      rate = bytesPerSecond
    },
    halfClose() {
      for (const { client } of links) client.end()
    },
    restore() {
      latency = 0
      rate = Infinity
      enter('open')
      reset(({ muted }) => muted)
    },
    async stop() {
      enter('cut')
      reset(() => true)
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
