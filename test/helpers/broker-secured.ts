/**
 * One real broker with TLS, SASL/SCRAM and an authorizer that denies what nobody has allowed. Its keys are made when it
 * starts, in the temporary folder that goes away with it.
 *
 * Three listeners: `tls` (the client shows a certificate, and is the `User:CN=...` of it), `saslSsl` (SCRAM-SHA-256 and -512
 * over TLS) and `saslPlain` (the same without TLS). The harness itself comes in by a fourth, on which all are super users.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Kafka, logLevel, type AclEntry, type Admin } from 'kafkajs'
import type { Access } from '../../src/topology'
import { asText, clusterProperties, nodeProperties } from './broker-config'
import { guard } from './broker-guard'
import { resolveJars } from './broker-jars'
import { brokerNode } from './broker-node'
import { freePort } from './broker-ports'
import { clusterReady } from './broker-ready'
import { dropScram } from './broker-scram'
import { clusterId, FAST_START } from './broker'

const run = promisify(execFile)
/** Of every key store; they live as long as the test. */
const STORE_PASSWORD = 'only-for-tests'
const LOG = { logLevel: logLevel.NOTHING }

export interface SecuredBroker {
  readonly version: string
  readonly tls: string
  readonly saslSsl: string
  readonly saslPlain: string
  /** What clients must trust, PEM. */
  readonly ca: string
  /** A certificate of somebody else, which the broker does not show and nobody should trust, PEM. */
  readonly foreignCa: string
  /** For `tls`: the key and certificate of `User:CN=<client>`, as Node's `pfx`. */
  readonly client: { readonly pfx: Buffer; readonly passphrase: string; readonly principal: string }
  readonly admin: Admin
  /** Who may everything. */
  readonly superKafka: Kafka
  /** Resolves when all of it is in force. */
  allow(principal: string, list: readonly Access[]): Promise<void>
  /** Takes exactly these away; resolves when none is in force any more. */
  withdraw(principal: string, list: readonly Access[]): Promise<void>
  /** The user's SCRAM-SHA-512 password is no more. Connections that stand must authenticate anew within seconds. */
  revokeUser(name: string): Promise<void>
  stop(): Promise<void>
}

export interface SecuredOptions {
  /** Password by user name; each gets SCRAM-SHA-256 and -512. */
  readonly users: Readonly<Record<string, string>>
  /** Common name of the client's certificate. */
  readonly client?: string
}

export async function startSecuredBroker({ users, client = 'tls-client' }: SecuredOptions): Promise<SecuredBroker> {
  const { version, classpath } = await resolveJars(process.env.KAFKA_VERSION)
  const folder = await mkdtemp(join(tmpdir(), 'retryline-broker-'))
  const watch = guard(folder)
  const [tls, saslSsl, saslPlain, internal, controller] = await fivePorts()
  const ports = new Map([[1, { client: internal, advertised: internal, internal, controller }]])
  const [server, own, foreign] = await Promise.all(
    ['broker', client, 'foreign'].map((name) => makeKey(folder, name)),
  ).catch(async (error: unknown) => {
    await watch.release()
    throw error
  })
  const node = brokerNode({
    id: 1,
    folder,
    classpath,
    clusterId: clusterId(),
    guard: watch,
    jvm: FAST_START,
    properties:
      nodeProperties(1, ports, join(folder, 'data1')) +
      asText({
        ...clusterProperties(1),
        ...security({ tls, saslSsl, saslPlain, internal, controller }, server!, own!),
      }),
    format: Object.entries(users).flatMap(([name, password]) =>
      ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((how) => [
        '--add-scram',
        `${how}=[name=${name},password=${password}]`,
      ]),
    ),
  })
  const superKafka = new Kafka({ clientId: 'harness', brokers: [`127.0.0.1:${internal}`], ...LOG })
  const admin = superKafka.admin()
  const stop = async (): Promise<void> => {
    await admin.disconnect().catch(() => undefined)
    await node.kill()
    await watch.release()
  }
  try {
    await node.format()
    node.start()
    await clusterReady(ports, node.died)
    await admin.connect()
  } catch (error) {
    await stop()
    throw error
  }

  const until = async (entries: readonly AclEntry[], wanted: boolean): Promise<void> => {
    for (const entry of entries) {
      while ((await admin.describeAcls(entry)).resources.length > 0 !== wanted) {
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
  }

  return {
    version,
    tls: `127.0.0.1:${tls}`,
    saslSsl: `127.0.0.1:${saslSsl}`,
    saslPlain: `127.0.0.1:${saslPlain}`,
    ca: server!.pem,
    foreignCa: foreign!.pem,
    client: { pfx: own!.store, passphrase: STORE_PASSWORD, principal: `User:CN=${client}` },
    admin,
    superKafka,
    async allow(principal, list) {
      const entries = list.map((access) => entryOf(principal, access))
      await admin.createAcls({ acl: [...entries] })
      await until(entries, true)
    },
    async withdraw(principal, list) {
      const entries = list.map((access) => entryOf(principal, access))
      await admin.deleteAcls({ filters: [...entries] })
      await until(entries, false)
    },
    revokeUser: (name) => dropScram(internal, name),
    stop,
  }
}

/** Kafka's numbers: kafkajs's own names for them cannot be imported from an ES module. */
const RESOURCE = { topic: 2, group: 3, 'transactional-id': 5 }
const OPERATION = { Read: 3, Write: 4, Create: 5, Describe: 8, DescribeConfigs: 10 }
const PATTERN = { literal: 3, prefixed: 4 }
const ALLOW = 3

function entryOf(principal: string, { resourceType, name, pattern, operation }: Access): AclEntry {
  return {
    principal,
    host: '*',
    permissionType: ALLOW,
    resourceType: RESOURCE[resourceType],
    resourceName: name,
    resourcePatternType: PATTERN[pattern],
    operation: OPERATION[operation],
  }
}

async function fivePorts(): Promise<[number, number, number, number, number]> {
  return [await freePort(), await freePort(), await freePort(), await freePort(), await freePort()]
}

interface Key {
  /** A PKCS#12 store with key and certificate. */
  readonly file: string
  readonly store: Buffer
  readonly pemFile: string
  /** The certificate, which has signed itself. */
  readonly pem: string
}

async function makeKey(folder: string, name: string): Promise<Key> {
  const file = join(folder, `${name}.p12`)
  const pemFile = join(folder, `${name}.pem`)
  const tool = [
    '-J-XX:TieredStopAtLevel=1',
    '-J-Xshare:auto',
    '-alias',
    name,
    '-keystore',
    file,
    '-storetype',
    'PKCS12',
  ]
  const secret = ['-storepass', STORE_PASSWORD]
  const key = ['-genkeypair', '-keyalg', 'EC', '-groupname', 'secp256r1', '-dname', `CN=${name}`, '-validity', '2']
  await run('keytool', [...key, '-ext', 'SAN=ip:127.0.0.1,dns:localhost', ...tool, ...secret])
  await run('keytool', ['-exportcert', '-rfc', '-file', pemFile, ...tool, ...secret])
  return { file, store: await readFile(file), pemFile, pem: await readFile(pemFile, 'utf8') }
}

interface Ports {
  readonly tls: number
  readonly saslSsl: number
  readonly saslPlain: number
  readonly internal: number
  readonly controller: number
}

function security(ports: Ports, server: Key, client: Key): Record<string, string | number> {
  const names = { TLS: ports.tls, SECURED: ports.saslSsl, SASLPLAIN: ports.saslPlain, INTERNAL: ports.internal }
  const open = Object.entries(names).map(([name, port]) => `${name}://127.0.0.1:${port}`)
  const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;'
  const jaas = ['secured', 'saslplain'].flatMap((listener) =>
    ['256', '512'].map((bits) => [`listener.name.${listener}.scram-sha-${bits}.sasl.jaas.config`, scram] as const),
  )
  return {
    listeners: [...open, `CONTROLLER://127.0.0.1:${ports.controller}`].join(),
    'advertised.listeners': open.join(),
    'listener.security.protocol.map':
      'TLS:SSL,SECURED:SASL_SSL,SASLPLAIN:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'ssl.keystore.type': 'PKCS12',
    'ssl.keystore.location': server.file,
    'ssl.keystore.password': STORE_PASSWORD,
    'ssl.key.password': STORE_PASSWORD,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': client.pemFile,
    // Without a certificate a client of `tls` would be ANONYMOUS, who is a super user here.
    'listener.name.tls.ssl.client.auth': 'required',
    'sasl.enabled.mechanisms': 'SCRAM-SHA-256,SCRAM-SHA-512',
    // A revoked password must be felt by connections that stand.
    'connections.max.reauth.ms': 12_000,
    ...Object.fromEntries(jaas),
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'allow.everyone.if.no.acl.found': 'false',
    'super.users': 'User:ANONYMOUS',
  }
}
