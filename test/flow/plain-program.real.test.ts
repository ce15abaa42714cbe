import { readFileSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { Kafka, logLevel } from 'kafkajs'
import { expect, it } from 'vitest'
import { describeWithBroker, unique } from '../helpers/broker-shared'
import { plain } from '../unit/testing/alike/stage'
import { plainProgram } from './plain-program'

const FILE = new URL('./plain-program.recorded.json', import.meta.url)

describeWithBroker('a plain program of kafkajs', ({ brokers }) => {
  // RECORD=1 writes down what it saw.
  it('sees on a real broker what was recorded', async () => {
    const prefix = unique('plain')
    const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING })
    const pass: (ms: number) => Promise<void> = promisify(setTimeout)
    const seen = plain(await plainProgram(kafka, (word) => `${prefix}.${word}`, pass), `${prefix}.`)
    if (process.env.RECORD === '1') writeFileSync(FILE, `${JSON.stringify(seen, null, 1)}\n`)
    expect(seen).toEqual(JSON.parse(readFileSync(FILE, 'utf8')))
  })
})
