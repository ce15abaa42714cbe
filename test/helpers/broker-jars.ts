/** Where a broker comes from without Docker: Maven Central's own artifacts, kept in the repository's ignored cache. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const CACHE = resolve(import.meta.dirname, '../../.cache/kafka')

/** Newest first. Each was seen to work with kafkajs; the next is taken where Maven does not serve the one before. */
export const KNOWN_VERSIONS = ['4.4.0', '4.1.1', '3.9.2'] as const
const DEFAULTS = KNOWN_VERSIONS.slice(0, 2)

export interface Jars {
  version: string
  classpath: string
}

/** Brings the jars of the version asked for (or the newest that can be had), once; later calls only look. */
export async function resolveJars(asked?: string): Promise<Jars> {
  const refused: string[] = []
  for (const version of asked === undefined ? DEFAULTS : [asked]) {
    const home = join(CACHE, version)
    if (!existsSync(home)) await download(version, home).catch((error: unknown) => refused.push(String(error)))
    if (existsSync(home)) return { version, classpath: join(home, '*') }
  }
  throw new Error(`Maven did not bring Kafka: ${refused.join('; ')}`)
}

async function download(version: string, home: string): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  // In a folder of its own until complete: two test runs may want the same version at the same time.
  const draft = await mkdtemp(join(CACHE, '.draft-'))
  try {
    await writeFile(join(draft, 'pom.xml'), pom(version))
    const copy = ['dependency:copy-dependencies', `-DoutputDirectory=${join(draft, 'libs')}`, '-DincludeScope=runtime']
    await run('mvn', ['-B', '-q', '-f', join(draft, 'pom.xml'), ...copy], { timeout: 600_000 })
    await rename(join(draft, 'libs'), home).catch((error: unknown) => {
      if (!existsSync(home)) throw error
    })
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

const dependency = (group: string, artifact: string, version: string): string =>
  `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`

const pom = (version: string): string =>
  `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
${dependency('org.apache.kafka', 'kafka_2.13', version)}
${dependency('org.slf4j', 'slf4j-simple', '1.7.36')}
</dependencies></project>
`
