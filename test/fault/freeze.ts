/**
 * A process that stops dead with a transaction open: the signal is sent by the process itself, between two steps, so that it is
 * known what the broker has by then, and what is the first thing that it gets when the process goes on.
 */
import type { Kafka, ProducerConfig, Transaction } from 'kafkajs'
import type { Ledger } from './ledger'

/** The step in front of which the process stops: the ones before are done and answered. */
export type Step = 'sendBatch' | 'sendOffsets' | 'commit'

export interface Freeze {
  /** Undefined: no freeze is ordered. */
  before: Step | undefined
}

/** Makes the client's transactional producers obey `freeze`. */
export function freezable(kafka: Kafka, freeze: Freeze, ledger: Ledger): Kafka {
  const { producer: make } = kafka
  // The engine inherits from the client that it is given: what is made here must come from the heir.
  kafka.producer = function (this: Kafka, config?: ProducerConfig) {
    const producer = make.call(this, config)
    if (config?.transactionalId === undefined) return producer
    const begin = producer.transaction.bind(producer)
    return { ...producer, transaction: async () => stopping(await begin(), config.transactionalId ?? '') }
  }
  return kafka

  function stopping(transaction: Transaction, id: string): Transaction {
    const here = (step: Step): void => {
      if (freeze.before !== step) return
      freeze.before = undefined
      ledger.write({ what: 'note', text: `frozen before ${step} of ${id}` })
      process.kill(process.pid, 'SIGSTOP')
    }
    return {
      ...transaction,
      sendBatch: async (batch) => {
        here('sendBatch')
        return transaction.sendBatch(batch)
      },
      sendOffsets: async (offsets) => {
        here('sendOffsets')
        return transaction.sendOffsets(offsets)
      },
      commit: async () => {
        here('commit')
        return transaction.commit()
      },
    }
  }
}
