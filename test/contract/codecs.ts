import { CompressionCodecs, CompressionTypes } from 'kafkajs'
import { onTestFinished } from 'vitest'
import type { KafkaClient } from '../../src/config'

type Codec = () => unknown

export interface CodecSwitch {
  /** As kafkajs comes with it for all but gzip; or failing with what is given, whatever that is. */
  takeAway(error?: unknown): void
  give(codec?: Codec): void
}

/** One codec in kafkajs's table, for one test. */
export function codecSwitch(name: 'GZIP' | 'LZ4'): CodecSwitch {
  const codecs = CompressionCodecs as Record<number, Codec>
  const number = CompressionTypes[name]
  const before = codecs[number]!
  onTestFinished(() => {
    codecs[number] = before
  })
  return {
    takeAway(
      error = Object.assign(new Error(`${name} compression not implemented`), { name: 'KafkaJSNotImplemented' }),
    ) {
      codecs[number] = () => {
        throw error
      }
    },
    give(codec = before) {
      codecs[number] = codec
    },
  }
}

/** One batch in gzip, as any producer sends it. */
export async function produceGzip(
  client: KafkaClient,
  topic: string,
  partition: number,
  messages: { value: string; headers?: Record<string, string> }[],
): Promise<void> {
  const producer = (client as any).producer({ createPartitioner: () => () => partition })
  await producer.connect()
  await producer.send({ topic, compression: CompressionTypes.GZIP, messages })
  await producer.disconnect()
}
