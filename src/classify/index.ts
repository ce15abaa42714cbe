/** Judges failures: retry or dead letter, and because of what. Pure; asked anew at every failure. */

export { classifyProblems } from './check-rules'
export { createClassifier } from './classifier'
export type { Answer, Classifier, ClassifierOptions, ClassifyOption } from './classifier'
export { describeError } from './describe-error'
export type { DescriptionLimits, ErrorDescription } from './describe-error'
export { deadLetterOn, holdOn, retryOn } from './rules'
export type { ClassifyContext, Match, On, Rule, StatusMatch } from './rules'
export { builtInRules } from './table'
export type { BuiltInRule } from './table'
export { deadLetter, hold, retry } from './verdict'
export type { DeadLetterReason, DeadLetterVerdict, HoldVerdict, RetryVerdict, Verdict } from './verdict'
