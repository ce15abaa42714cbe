import type { FakeLogger } from './types'

/** The shape of kafkajs's logger; the fake prints nothing. */
export function silentKafkaLogger(): FakeLogger {
  const nothing = (): void => undefined
  const logger: FakeLogger = {
    info: nothing,
    error: nothing,
    warn: nothing,
    debug: nothing,
    namespace: () => logger,
    setLogLevel: nothing,
  }
  return logger
}
