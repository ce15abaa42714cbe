// In NestJS: the consumer is a provider. Its handler uses an injected service, and it starts and stops with the application.
import 'reflect-metadata'
import { Controller, Get, Injectable, Module, ServiceUnavailableException } from '@nestjs/common'
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { Kafka } from 'kafkajs'
import { createResilientConsumer, type Health, type ResilientConsumer } from '../src/index' // yours: 'retryline'

const { KAFKA_BROKERS = 'localhost:9092', BANK_URL = 'http://localhost:8080', NODE_ENV, PORT = '3000' } = process.env

@Injectable()
class Bank {
  async charge(order: Buffer | null, signal: AbortSignal): Promise<void> {
    const answer = await fetch(`${BANK_URL}/charges`, { method: 'POST', body: String(order), signal })
    if (!answer.ok) throw Object.assign(new Error(`the bank says ${answer.status}`), { status: answer.status })
  }
}

@Injectable()
class BillingConsumer implements OnModuleInit, OnApplicationShutdown {
  private readonly consumer: ResilientConsumer

  constructor(bank: Bank) {
    this.consumer = createResilientConsumer({
      kafka: new Kafka({ clientId: 'billing', brokers: KAFKA_BROKERS.split(',') }),
      groupId: 'billing',
      topic: 'orders',
      schedule: ['1s', '1m', '10m'],
      topicSetup: NODE_ENV === 'production' ? 'verify' : 'create',
      handler: ({ message }, { signal }) => bank.charge(message.value, signal),
    })
  }

  async onModuleInit(): Promise<void> {
    await this.consumer.start()
  }

  async onApplicationShutdown(): Promise<void> {
    await this.consumer.stop()
  }

  health(): Health {
    return this.consumer.health()
  }
}

@Controller()
class Probes {
  constructor(private readonly billing: BillingConsumer) {}

  @Get('live')
  live(): string {
    return 'ok'
  }

  @Get('ready')
  ready(): Health {
    const health = this.billing.health()
    if (!['ok', 'paused'].includes(health.status)) throw new ServiceUnavailableException(health)
    return health
  }
}

@Module({ controllers: [Probes], providers: [Bank, BillingConsumer] })
class AppModule {}

const app = await NestFactory.create(AppModule)
// Without it Nest ends itself with the signal, which some platforms count as a failure.
app.enableShutdownHooks(['SIGTERM', 'SIGINT'], { useProcessExit: true })
await app.listen(Number(PORT))
