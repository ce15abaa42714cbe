import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { resolve } from 'node:path'
import { expect, it, vi } from 'vitest'
import { describeWithOwnBrokers } from '../helpers/broker-shared'

const helper = resolve(import.meta.dirname, '../helpers/broker.ts')
const script = `
import { startBroker } from ${JSON.stringify(helper)}
const broker = await startBroker()
console.log(broker.pid(1))
setInterval(() => undefined, 1000)
`

describeWithOwnBrokers('a program that ends without stopping its broker', () => {
  it.each(['SIGKILL', 'SIGINT'] as const)('leaves none behind: %s', async (signal) => {
    const program = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const pid = await new Promise<string>((resolve) => createInterface(program.stdout).once('line', resolve))
    expect(existsSync(`/proc/${pid}`)).toBe(true)
    program.kill(signal)
    await vi.waitUntil(() => !existsSync(`/proc/${pid}`), { timeout: 10_000, interval: 50 })
  })
})
