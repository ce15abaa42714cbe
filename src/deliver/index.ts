export { createOutbox } from './outbox'
export type { Outbox, OutboxOptions, SendResult } from './outbox'
export { sizeOf } from './size'
