/**
 * kafkajs's own error classes, for `instanceof`: code that tests for one of them must find it in a test too.
 *
 * The fake needs no kafkajs. But whoever tests for its classes has loaded it, so it is looked up when the first error
 * is made, where the package manager has put it; and the fake's classes are then made its subclasses.
 */
import { createRequire } from 'node:module'

type Class = abstract new (...args: never[]) => object

function kafkajsClasses(): Partial<Record<string, Class>> {
  // The one of a CommonJS module, where there is no import.meta.
  const load = createRequire(typeof __filename === 'string' ? __filename : import.meta.url)
  // The whole of kafkajs takes 40 ms to load, which the first test of a file would pay for; the file with its errors takes 2.
  for (const name of ['kafkajs/src/errors', 'kafkajs']) {
    try {
      return load(name) as Partial<Record<string, Class>>
    } catch {
      // Not there, or not to be had by that name.
    }
  }
  return {}
}

/** Makes each of these classes a subclass of kafkajs's class of the same name, as far as `instanceof` asks. */
export function descendFromKafkajs(classes: Readonly<Record<string, Class>>): void {
  const theirs = kafkajsClasses()
  for (const [name, own] of Object.entries(classes)) {
    const their = theirs[name]
    if (typeof their === 'function') Object.setPrototypeOf(own.prototype, their.prototype as object)
  }
}
