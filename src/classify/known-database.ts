import { members, read } from './look'
import type { Look } from './look'
import { oneOf } from './known-network'
import type { Finding } from './known-network'

const SQLSTATE = /^[0-9A-Z]{5}$/
/** Five digits are an error code in many places (a business failure is `40004` in one payment API). */
const AMBIGUOUS = /^(22|23|40|42)\d{3}$/
const DATABASE_CLASS = /database|postgres|mysql|mariadb|sql|query|^pg|^error$|driver/i
const DATABASE_MESSAGE = /\b(sql|relation|column|constraint|transaction|serializ\w+|deadlock|duplicate key|violates)\b/i

/** pg and postgres.js fill `severity` and `routine`; mysql2 `sqlMessage`; TypeORM `query`; Sequelize `sql`. */
const SIGNS = ['severity', 'routine', 'sqlMessage', 'sql', 'query'] as const

function comesFromDatabase(seen: Look): boolean {
  return (
    SIGNS.some((key) => typeof seen.get(key) === 'string') ||
    // pg: the length of the server's message.
    typeof seen.get('length') === 'number' ||
    seen.names.some((name) => name !== 'Error' && DATABASE_CLASS.test(name)) ||
    DATABASE_MESSAGE.test(seen.message)
  )
}

function sqlState(seen: Look): string | undefined {
  const own = seen.get('sqlState')
  if (typeof own === 'string' && SQLSTATE.test(own)) return own
  const { code } = seen
  if (typeof code !== 'string' || !SQLSTATE.test(code)) return undefined
  return AMBIGUOUS.test(code) && !comesFromDatabase(seen) ? undefined : code
}

/** Connection, rollback, resources; lock not available; query cancelled; shutdown and kin (PostgreSQL, appendix A). */
const TRANSIENT_STATE = /^(08...|40...|53...|55P03|57014|57P0[1-5])$/
/** Data exception; integrity constraint; syntax error or access rule. */
const PERMANENT_STATE = /^(22|23|42).../

export function sqlTransient(seen: Look): Finding {
  const state = sqlState(seen)
  return state !== undefined && TRANSIENT_STATE.test(state) && state
}

export function sqlPermanent(seen: Look): Finding {
  const state = sqlState(seen)
  return state !== undefined && PERMANENT_STATE.test(state) && state
}

// prettier-ignore
const MYSQL = new Set([
  'ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'ER_CON_COUNT_ERROR', 'ER_TOO_MANY_USER_CONNECTIONS',
  'ER_SERVER_SHUTDOWN', 'ER_CLIENT_INTERACTION_TIMEOUT', 'PROTOCOL_CONNECTION_LOST', 'PROTOCOL_SEQUENCE_TIMEOUT',
])

export const mysql = ({ code }: Look): Finding => oneOf(code, MYSQL)

const MONGO_LABELS = ['TransientTransactionError', 'RetryableWriteError', 'SystemOverloadedError'] as const
const MONGO_CLASS = /^Mongo(Network|NetworkTimeout|ServerSelection|PoolCleared|WaitQueueTimeout)Error$/

/** By label, as the server and the driver give them, and by the class of what never reached a server. */
export function mongo({ names, error, get }: Look): Finding {
  const labels = members(get('errorLabels'), 20)
  const has = get('hasErrorLabel')
  const label = MONGO_LABELS.find((each) => {
    if (labels.includes(each)) return true
    try {
      return typeof has === 'function' && has.call(error, each) === true
    } catch {
      return false
    }
  })
  return label ?? names.find((name) => MONGO_CLASS.test(name)) ?? false
}

/** Cannot reach, time-out at connecting, time-out, closed, no free connection, conflict or deadlock. */
const PRISMA_TRANSIENT = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2034'])
/** Unique constraint, foreign key. */
const PRISMA_PERMANENT = new Set(['P2002', 'P2003'])

export const prismaTransient = ({ code }: Look): Finding => oneOf(code, PRISMA_TRANSIENT)
export const prismaPermanent = ({ code }: Look): Finding => oneOf(code, PRISMA_PERMANENT)

const REDIS_REPLY = /^(LOADING|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|READONLY|BUSY) /
const REDIS_CLASS = /^(ReplyError|ErrorReply|SimpleError|RedisError)$/
/** Some of these words also begin other people's sentences; Redis's own go on like this. */
const REDIS_TEXT = /^(TRYAGAIN|CLUSTERDOWN|MASTERDOWN) |^(LOADING|BUSY) \w+ is |^READONLY You can't write/

export function redis({ names, message }: Look): Finding {
  const prefix = REDIS_REPLY.exec(message)?.[1]
  return prefix !== undefined && (REDIS_TEXT.test(message) || names.some((name) => REDIS_CLASS.test(name))) && prefix
}

/** TypeORM; Sequelize by class and by name; MikroORM. */
const LOCK_CLASSES = new Set([
  'OptimisticLockVersionMismatchError',
  'OptimisticLockError',
  'SequelizeOptimisticLockError',
])

export function optimisticLock({ names, message, get }: Look): Finding {
  const name = names.find((each) => LOCK_CLASSES.has(each))
  if (name !== undefined) return name
  // Mongoose's name is a common word: an application's own VersionError is about something else.
  const isMongoose = typeof read(get('modifiedPaths'), 'length') === 'number' || /^No matching document/.test(message)
  return names.includes('VersionError') && isMongoose && 'VersionError'
}
