import type { Kafka } from 'kafkajs'
import type { KafkaJsLike } from '../../src/adapters/kafkajs/kafkajs-like'
declare const real: Kafka
export const fits: KafkaJsLike = real
