import { truncateUtf8 } from '../record/text'
import { isArray, isObject, look, members, read } from './look'
import type { Look } from './look'
import { unfold } from './walk'

export interface ErrorDescription {
  /** The error's name, its class's where the name is only `Error`, or the type of what was thrown instead of an error. */
  readonly name: string
  readonly message: string
  /** The stack, and the stacks of its causes below it; undefined where there is none. */
  readonly stack: string | undefined
  readonly code?: string
}

/** How many bytes a description may take, as UTF-8. A header of a record must stay small beside its value. */
export interface DescriptionLimits {
  /** 1024 by default. */
  readonly messageBytes?: number
  /** 8192 by default. With 0 no stack is read: the engine writes a stack's text when it is first read, which is dear. */
  readonly stackBytes?: number
}

/** For what is a word in good order: a class name, a code. */
const NAME_BYTES = 128
/** How many gathered messages stand for an AggregateError that has none itself, and how many causes give their stack. */
const FEW = 5

function nameOf({ error, names }: Look): string {
  if (error === null) return 'null'
  if (typeof error !== 'object') return typeof error
  // pg's name is `error`; many classes never set theirs.
  return names.find((name) => name.toLowerCase() !== 'error') ?? names[0] ?? 'object'
}

function plainText(error: unknown): string {
  try {
    return String(error)
  } catch {
    return 'something that cannot be shown'
  }
}

function messageOf({ error, message }: Look, gathered: readonly string[]): string {
  if (error === undefined || error === null) {
    return `${error} was thrown, or a promise rejected without a reason; throw an Error, which says what has happened`
  }
  if (!isObject(error)) return plainText(error)
  if (typeof error === 'function') return `a function was thrown: ${plainText(read(error, 'name'))}`
  if (message !== '') return message
  // Node's own AggregateError of a failed connection has an empty message.
  if (gathered.length > 0) return gathered.join('; ')
  if (isArray(error)) return `a list of ${members(error, 1000).length} was thrown`
  if (typeof read(error, 'stack') === 'string') return ''
  try {
    return `an object was thrown, with ${Object.keys(error).slice(0, 10).join(', ') || 'no keys'}`
  } catch {
    return 'an object was thrown that cannot be read'
  }
}

/** What there is to say of anything that was thrown, in bounded texts. Never throws. */
export function describeError(error: unknown, limits: DescriptionLimits = {}): ErrorDescription {
  const { messageBytes = 1024, stackBytes = 8192 } = limits
  const { chain, gathered } = unfold(error)
  const seen = chain[0] ?? look(error)
  const messages = gathered.slice(0, FEW).map((each) => each.chain[0]?.message ?? '')
  const stacks = chain.slice(0, stackBytes > 0 ? FEW : 0).map(({ get }) => get('stack'))
  const [own, ...behind] = stacks.map((stack) => (typeof stack === 'string' ? stack.slice(0, stackBytes) : undefined))
  const causes = behind.flatMap((stack) => (stack === undefined ? [] : [`caused by: ${stack}`]))
  const code = seen.code === undefined ? undefined : truncateUtf8(String(seen.code), NAME_BYTES)
  return {
    name: truncateUtf8(nameOf(seen), NAME_BYTES),
    message: truncateUtf8(messageOf(seen, messages.filter(Boolean)), messageBytes),
    stack: own === undefined ? undefined : truncateUtf8([own, ...causes].join('\n'), stackBytes),
    ...(code !== undefined && { code }),
  }
}
