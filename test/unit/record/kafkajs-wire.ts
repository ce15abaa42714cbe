/** kafkajs's own codec of a record: what a header becomes on its way from any producer to a handler. */
import { createRequire } from 'node:module'
import type { Header, KafkaHeaders } from '../../../src/record'

const require = createRequire(import.meta.url)
const Encoder = require('kafkajs/src/protocol/encoder')
const Decoder = require('kafkajs/src/protocol/decoder')
const encodeRecord = require('kafkajs/src/protocol/recordBatch/record/v0')
const decodeRecord = require('kafkajs/src/protocol/recordBatch/record/v0/decoder')

const batch = { firstOffset: '0', firstTimestamp: '0' }

/** Headers as any producer may have written them (null values and all), as kafkajs hands them over. */
export function decoded(headers: readonly Header[]): KafkaHeaders {
  const encoder = new Encoder()
    .writeInt8(0)
    .writeVarLong(0)
    .writeVarInt(0)
    .writeVarIntBytes(null)
    .writeVarIntBytes(null)
  encoder.writeVarIntArray(
    headers.map(([name, value]) => new Encoder().writeVarIntString(name).writeVarIntBytes(value)),
  )
  return decodeRecord(new Decoder(encoder.buffer), batch).headers
}

/** Headers written by kafkajs's producer and read by its consumer. */
export function throughKafkajs(headers: object): KafkaHeaders {
  const { buffer } = encodeRecord({ key: null, value: null, headers })
  const decoder = new Decoder(buffer)
  decoder.readVarInt()
  return decodeRecord(decoder, batch).headers
}
