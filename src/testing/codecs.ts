/**
 * Codecs of batches, as far as they are faked: a batch has one, and kafkajs's own table says whether it can be used. What
 * is in the batch is never packed.
 */
import { createRequire } from 'node:module'
import { KafkaJSNotImplemented } from './errors'

/** By Kafka's number, which is also the value of a batch's attributes. */
const NAMES = ['None', 'GZIP', 'Snappy', 'LZ4', 'ZSTD'] as const
const UNCOMPRESSED = 0
const GZIP = 1
/** What a codec's number is taken from. */
const MASK = 7

type Table = Record<number, (() => unknown) | undefined>

let table: Table | undefined

/** The one that `CompressionCodecs` of kafkajs is, where kafkajs can be had; else what it comes with. */
function codecs(): Table {
  if (table !== undefined) return table
  // The one of a CommonJS module, where there is no import.meta.
  const load = createRequire(typeof __filename === 'string' ? __filename : import.meta.url)
  try {
    table = (load('kafkajs/src/protocol/message/compression') as { Codecs: Table }).Codecs
  } catch {
    table = Object.fromEntries(
      NAMES.map((name, number): [number, () => unknown] => [
        number,
        () => {
          if (number > GZIP) throw new KafkaJSNotImplemented(`${name} compression not implemented`)
        },
      ]),
    )
  }
  return table
}

/** Throws what kafkajs throws at a batch in a codec that nobody has registered. */
export function checkCodec(attributes = UNCOMPRESSED): void {
  const number = attributes & MASK
  if (number !== UNCOMPRESSED) codecs()[number]?.()
}

/** Of a batch on a topic with this `compression.type`. */
export function codecOn(type: string, sent = UNCOMPRESSED): number {
  if (type === 'producer') return sent
  return Math.max(
    UNCOMPRESSED,
    NAMES.findIndex((name) => name.toLowerCase() === type),
  )
}
