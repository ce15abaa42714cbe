import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { createFakeKafka } from '../../src/testing'
import { plain } from '../unit/testing/alike/stage'
import { plainProgram } from './plain-program'

it('a plain program of kafkajs sees on the fake what it saw on a real broker', async () => {
  const recorded = JSON.parse(
    readFileSync(new URL('./plain-program.recorded.json', import.meta.url), 'utf8'),
  ) as unknown
  const kafka = createFakeKafka()
  const seen = await plainProgram(
    kafka,
    (word) => `plain.${word}`,
    (ms) => kafka.clock.advance(ms),
  )
  expect(plain(seen, 'plain.')).toEqual(recorded)
})
