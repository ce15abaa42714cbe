import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { freePort } from '../helpers/broker-ports'
import { startProxy, type Proxy } from '../helpers/proxy'

/** The proxy is judged on a server that answers each line with the same line; a broker adds nothing to that. */
let server: Server
let proxy: Proxy
let asked: string[]
beforeEach(async () => {
  asked = []
  const port = await freePort()
  server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      asked.push(String(chunk))
      socket.write(chunk)
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  proxy = await startProxy({ to: port })
})
afterEach(async () => {
  await proxy.stop()
  server.close()
})

interface Client {
  socket: Socket
  heard: string
  ended: boolean
  closed: boolean
}

async function client(): Promise<Client> {
  const socket = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true })
  const state: Client = { socket, heard: '', ended: false, closed: false }
  socket.on('data', (chunk) => (state.heard += String(chunk)))
  socket.on('end', () => (state.ended = true))
  socket.on('close', () => (state.closed = true))
  socket.on('error', () => undefined)
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => undefined)
  return state
}

/** Sends `text` and waits for the echo. */
async function echo(from: Client, text: string): Promise<void> {
  from.socket.write(text)
  await vi.waitUntil(() => from.heard.endsWith(text))
}

it('passes bytes on, both ways', async () => {
  const one = await client()
  await echo(one, 'a')
  await echo(one, 'b')
  expect(one.heard).toBe('ab')
  one.socket.destroy()
})

it('cut resets what is connected and what connects, until restore', async () => {
  const one = await client()
  await echo(one, 'a')
  proxy.cut()
  await vi.waitUntil(() => one.closed)
  const two = await client()
  await vi.waitUntil(() => two.closed)
  proxy.restore()
  await echo(await client(), 'b')
  expect(asked).toEqual(['a', 'b'])
})

it('hold keeps bytes back and loses none', async () => {
  const one = await client()
  await echo(one, 'a')
  proxy.hold()
  one.socket.write('b')
  const two = await client()
  two.socket.write('c')
  proxy.restore()
  await vi.waitUntil(() => one.heard === 'ab' && two.heard === 'c')
  expect(asked.sort()).toEqual(['a', 'b', 'c'])
})

it('mute lets requests through and throws answers away', async () => {
  const one = await client()
  await echo(one, 'a')
  proxy.mute()
  one.socket.write('b')
  await vi.waitUntil(() => proxy.dropped === 1)
  expect(asked).toEqual(['a', 'b'])
  proxy.restore()
  await vi.waitUntil(() => one.closed)
  expect(one.heard).toBe('a')
})

it('delay passes each chunk on later, in order', async () => {
  const one = await client()
  await echo(one, 'a')
  proxy.delay(50)
  const before = performance.now()
  await echo(one, 'b')
  expect(performance.now() - before).toBeGreaterThan(90)
  expect(one.heard).toBe('ab')
})

it('halfClose ends what the client reads, not what it writes', async () => {
  const one = await client()
  await echo(one, 'a')
  proxy.halfClose()
  await vi.waitUntil(() => one.ended)
  one.socket.write('b')
  await vi.waitUntil(() => asked.includes('b'))
  expect(one.heard).toBe('a')
  one.socket.destroy()
})
