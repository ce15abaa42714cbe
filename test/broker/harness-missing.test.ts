import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

/** Runs one small file of this project where neither KAFKA_BROKERS, nor Docker, nor Java is to be had. */
function runWithoutBroker(extra: Record<string, string>): { status: number | null; output: string } {
  const root = resolve(import.meta.dirname, '../..')
  const vitest = resolve(root, 'node_modules/vitest/vitest.mjs')
  const env = { HOME: '/nonexistent', PATH: '/nonexistent', DOCKER_HOST: 'tcp://127.0.0.1:1', ...extra }
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [vitest, 'run', '--project', 'broker', 'test/broker/harness-probe.test.ts'],
    { cwd: root, env, encoding: 'utf8', timeout: 50_000 },
  )
  return { status, output: stdout + stderr }
}

describe('where no broker can be had', () => {
  it('says so aloud, and why, and goes on', () => {
    const { status, output } = runWithoutBroker({})
    expect(output).toMatch(/!!! THE REAL-BROKER SUITES DID NOT RUN: .*KAFKA_BROKERS.*Docker.*no java and no mvn.* !!!/)
    expect(output).toMatch(/1 skipped/)
    expect(status).toBe(0)
  })

  it('fails when a broker is required', () => {
    const { status, output } = runWithoutBroker({ REQUIRE_KAFKA: '1' })
    expect(output).toMatch(/REQUIRE_KAFKA=1 asks for the real-broker suites/)
    expect(status).not.toBe(0)
  })
})
