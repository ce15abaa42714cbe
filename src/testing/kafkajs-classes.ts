/**
 * kafkajs's own error classes, for `instanceof`: code that tests for one of them must find it in a test too.
 *
 * The fake needs no kafkajs. But whoever tests for its classes has loaded it, so it is looked up when the first error
 * is made, where the package manager has put it; and the fake's classes are then made its subclasses.
 */
import { createRequire } from 'node:module'

type Class = abstract new (...args: never[]) => object

function kafkajsClasses(): Partial<Record<string, Class>> {
  try {
    // The one of a CommonJS module, where there is no import.meta.
    const here = typeof __filename === 'string' ? __filename : import.meta.url
    return createRequire(here)('kafkajs') as Partial<Record<string, Class>>
  } catch {
    return {}
  }
}

/** Makes each of these classes a subclass of kafkajs's class of the same name, as far as `instanceof` asks. */
export function descendFromKafkajs(classes: Readonly<Record<string, Class>>): void {
  const theirs = kafkajsClasses()
  for (const [name, own] of Object.entries(classes)) {
    const their = theirs[name]
    if (typeof their === 'function') Object.setPrototypeOf(own.prototype, their.prototype as object)
  }
}
