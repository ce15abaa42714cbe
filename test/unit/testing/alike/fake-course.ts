import type { FakeKafka } from '../../../../src/testing'

/** How a story waits on the fake: by moving the clock. */
export function fakeCourse({ clock }: FakeKafka) {
  return {
    now: () => clock.now(),
    pass: (ms: number) => clock.advance(ms),
    async until(condition: () => boolean): Promise<void> {
      await clock.settle()
      for (let i = 0; !condition(); i++) {
        if (i > 1000) throw new Error('it never came to that')
        await clock.advance(50)
      }
    },
    sleep: (ms: number) => clock.sleep(ms),
    gate: <T>(promise: Promise<T>) => clock.park(promise),
    async eventually<T>(promise: Promise<T>): Promise<T> {
      let settled = false
      const end = (): void => void (settled = true)
      promise.then(end, end)
      while (!settled) await clock.advance(50)
      return promise
    },
  }
}
