import type { EachMessageHandler, EachMessagePayload, KafkaMessage } from 'kafkajs'
import { expectTypeOf, test } from 'vitest'
import type { Logger } from '../../src/ports'
import type { EachMessage, Handler, HandlerContext, HandlerLogger, HandlerMessage, Message } from '../../src/record'

test('a handler typed by kafkajs is a handler', () => {
  expectTypeOf<EachMessageHandler>().toExtend<Handler>()
  expectTypeOf<EachMessageHandler>().toExtend<Handler<{ id: string }>>()
})

test('what a handler gets can be handed to functions that are written for kafkajs', () => {
  expectTypeOf<EachMessage>().toExtend<EachMessagePayload>()
  expectTypeOf<HandlerMessage>().toExtend<KafkaMessage>()
  expectTypeOf<HandlerMessage>().toExtend<Message>()
})

test('the logger of a context is the Logger port', () => {
  expectTypeOf<HandlerLogger>().toEqualTypeOf<Logger>()
  expectTypeOf<HandlerContext['logger']>().toExtend<Logger>()
})
