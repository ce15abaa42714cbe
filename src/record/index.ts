export type { Header, HeaderValue, Message, Outgoing, Position, Rec } from './record'
export {
  allHeaders,
  copyHeaders,
  firstHeader,
  fromKafkaHeaders,
  lastHeader,
  toKafkaHeaders,
  toMessageHeaders,
  toRec,
} from './headers'
export type { KafkaHeaders, WritableHeaders } from './headers'
export type { BatchContext, BatchHandler, BatchMessage, MessageBatch } from './batch-handler'
export type {
  EachMessage,
  Handler,
  HandlerContext,
  HandlerLogger,
  HandlerMessage,
  OutgoingMessage,
  Source,
} from './handler'
export { truncateUtf8 } from './text'
