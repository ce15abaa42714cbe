/**
 * The field cases: what users of retry and dead letter tools have reported in public, by number. Each is a story in a file
 * of its own, `rNN-….ts`, unless it waits for a part of the library that is not there yet.
 */
export interface FieldCase {
  /** `R01` and so on; some numbers are not used. */
  readonly number: string
  /** What went wrong, in a few words. */
  readonly kind: string
  /** `broker`: the fake alone does not prove it. */
  readonly needs: 'fake' | 'broker'
  /** The step that brings what the whole case is about; until then it has no story. */
  readonly waitsFor?: string
  /** What the story leaves out until a later step. */
  readonly later?: string
  /** Why it is not told to the fake broker. */
  readonly notOnFake?: string
}

const fake = (number: string, kind: string, more: Partial<FieldCase> = {}): FieldCase => ({
  number,
  kind,
  needs: 'fake',
  ...more,
})
const broker = (number: string, kind: string, more: Partial<FieldCase> = {}): FieldCase => ({
  ...fake(number, kind, more),
  needs: 'broker',
})

const REPLAY = 'step 5, replay'
const STORE = 'a later step, the store'

export const CASES: readonly FieldCase[] = [
  // 1. Loss and corruption
  broker('R01', 'lost in the wait until it is due'),
  fake('R02', 'a publish that resolves and has not published'),
  broker('R03', 'partition counts that differ'),
  broker('R04', 'a partition that is not there any more', { waitsFor: REPLAY }),
  fake('R05', 'the offset moves, the record is nowhere'),
  fake('R06', 'a wrong offset around a slow dead letter'),
  fake('R07', 'too short a wait for a copy'),
  broker('R08', 'many sends at once, some dropped in silence'),
  broker('R09', 'a late result after a rebalance'),
  broker('R10', 'commits for partitions that are gone'),
  fake('R11', 'results out of order'),
  fake('R12', 'a dead letter steps over what still runs'),
  broker('R13', 'a stop in the middle of a batch'),
  broker('R14', 'no commit at the stop'),
  broker('R15', 'null header values'),
  broker('R18', 'records from before the first join'),
  broker('R19', "one group's failure comes to every group", { later: REPLAY }),
  broker('R20', 'a replay for one group only', { waitsFor: REPLAY }),
  fake('R21', 'an old event over a newer state'),
  fake('R22', 'one key, one place: the second replaces the first', { later: STORE }),
  broker('R24', 'an expiry that travels with the dead letter'),
  // 2. Partitions that stop
  broker('R25', 'paused, away, back, and never resumed'),
  broker('R26', 'a pause that outlives the assignment'),
  broker('R27', 'waiting uses up an error budget'),
  broker('R28', 'a success does not give the budget back'),
  broker('R29', 'a heavy record blocks its neighbours'),
  broker('R30', 'a slow topic starves a fast one'),
  fake('R32', 'a long wait in front of a short one'),
  fake('R33', 'retry headers from outside'),
  fake('R34', 'a delay longer than a timer'),
  broker('R35', 'a resume that does not resume'),
  broker('R36', 'a resume that takes seconds'),
  broker('R37', 'a retry pauses the whole consumer'),
  broker('R38', 'a pause of a partition just lost'),
  broker('R40', 'a fetch that is never answered', {
    notOnFake: 'requests take no time there, so nobody is ever silent',
  }),
  broker('R42', 'green health, dead consumer'),
  // 3. Crash loops and storms
  broker('R43', 'dead after an error that nobody retries'),
  fake('R44', 'a poison record, again and again'),
  fake('R45', 'a recipe that does not cover it'),
  broker('R47', 'long handlers, thrown out of the group'),
  broker('R49', 'a sleep instead of a wait'),
  fake('R50', 'an undecodable record that grows', { later: REPLAY }),
  fake('R51', 'a failure at the dead letter topic itself', { later: 'step 5, the monitor' }),
  fake('R54', 'failing records fill every place'),
  broker('R55', 'a codec that nobody registered'),
  broker('R56', 'a producer that does not come back', { notOnFake: 'it has no connections' }),
  // 4. Shutdown and lifecycle
  broker('R58', 'a stop before the start has ended'),
  broker('R59', 'a stop during a crash'),
  broker('R60', 'a stop that hangs'),
  // 5. Groups and topics
  broker('R63', 'one group, different topics'),
  broker('R64', 'topics that are not there'),
  broker('R65', 'a main topic made by accident'),
  broker('R68', 'too many consumers'),
  // 6. Timing
  broker('R69', 'one second that takes ten'),
  fake('R70', 'the delay of the wrong tier'),
  broker('R71', 'waiting told as an error'),
  // 7. Envelope and headers
  broker('R74', 'header names that every object has'),
  fake('R75', 'a trace lost or doubled', { later: REPLAY }),
  // 8. Runtime cost
  broker('R76', 'timers of idle connections', { notOnFake: "the timers are kafkajs's own" }),
  // 9. Policy
  fake('R77', 'a dependency down fills the dead letter topic'),
  fake('R78', 'an open breaker dead-letters everything'),
  fake('R79', 'no limit to dead letters'),
  fake('R80', 'lost connections as dead letters'),
  fake('R82', 'one bad record, the whole batch dead'),
  fake('R83', 'after the last attempt, a person', { later: STORE }),
]
