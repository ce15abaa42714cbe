/**
 * A process that stops dead with a transaction open: the signal is sent by the process itself, between two steps, so that it is
 * known what the broker has by then, and what is the first thing that it gets when the process goes on.
 */
import { Kafka, type ProducerConfig, type Transaction } from 'kafkajs'
import type { Ledger } from './ledger'

/** The step in front of which the process stops: the ones before are done and answered. */
export type Step = 'sendBatch' | 'sendOffsets' | 'commit'

export interface Freeze {
  /** Undefined: no freeze is ordered. */
  before: Step | undefined
}

/**
 * Makes the transactional producers of this process obey `freeze`. The class is changed and not a client: one with a method of
 * its own is not plain kafkajs to the engine, which would then leave its connections unguarded.
 */
export function makeFreezable(freeze: Freeze, ledger: Ledger): void {
  const { producer: make } = Kafka.prototype
  Kafka.prototype.producer = function (this: Kafka, config?: ProducerConfig) {
    const producer = make.call(this, config)
    if (config?.transactionalId === undefined) return producer
    const begin = producer.transaction.bind(producer)
    return { ...producer, transaction: async () => stopping(await begin(), config.transactionalId ?? '') }
  }

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
