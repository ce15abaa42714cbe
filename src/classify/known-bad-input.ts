import { members, read } from './look'
import type { Look } from './look'
import type { Finding } from './known-network'

/** Names that mean only one thing: zod 3 and 4, valibot, arktype, yup, joi, Mongoose, class-validator; Sequelize; Prisma. */
const VALIDATION_CLASS =
  /^(\$?ZodError|ZodRealError|ValiError|TraversalError|SchemaError|(Sequelize|PrismaClient)?ValidationError)$/

/** Standard Schema: a list of issues, each with a message. */
function hasIssues(seen: Look): boolean {
  const [first] = members(seen.get('issues'), 1)
  return typeof read(first, 'message') === 'string'
}

/** ajv, whose class keeps the name `Error`; also where only its list of errors was passed on. */
function isAjv(seen: Look): boolean {
  const [first] = members(seen.get('errors'), 1)
  return (
    seen.get('ajv') === true || (typeof read(first, 'keyword') === 'string' && read(first, 'schemaPath') !== undefined)
  )
}

/** class-validator: no Error at all, and thrown as a list. */
function isClassValidator(seen: Look): boolean {
  const constraints = seen.get('constraints')
  return typeof seen.get('property') === 'string' && typeof constraints === 'object' && constraints !== null
}

export function validation(seen: Look): Finding {
  const name = seen.names.find((each) => VALIDATION_CLASS.test(each))
  return name ?? (seen.get('isJoi') === true || hasIssues(seen) || isAjv(seen) || isClassValidator(seen))
}

export const syntax = ({ names }: Look): Finding => names.includes('SyntaxError')

const BUGS = ['TypeError', 'ReferenceError', 'RangeError']

export const bug = ({ names }: Look): Finding => BUGS.find((name) => names.includes(name)) ?? false
