/**
 * R35: a resume that does not resume.
 * Given a consumer of two partitions, with records that come all the while.
 * When it is paused and resumed a hundred times, in any mix: all at once, topic by topic, and a partition by its handler.
 * Then flow returns each time, every record is handled once, and in the end nothing is paused.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { seeded } from '../contract/seeded'

export function r35(given: Given): void {
  it('R35 P11: pause() and resume() a hundred times, topic by topic and all at once: flow returns each time', async () => {
    const scene = await given.scene({ partitions: 2 })
    const { consumer } = await scene.join()
    const held = (): number =>
      consumer.health().groups[0]?.partitions.reduce((sum, partition) => sum + partition.held, 0) ?? 0
    for (let round = 0; round < 100; round++) {
      const target = round % 3 === 0 ? undefined : { topic: scene.topic }
      consumer.pause(target)
      await scene.produce([`r${round}`], round % 2)
      if (round % 10 === 0) {
        expect(consumer.health().status).toBe('paused')
        await given.stage().until(() => held() > 0, 'what came is held')
        expect(scene.calls).toHaveLength(round)
      }
      consumer.resume(round % 3 === 1 ? undefined : target)
      // Before a round that looks at what is held, all that came before must be done.
      if (round % 10 === 0 || round % 10 === 9) await scene.untilCalls(round + 1)
    }
    await scene.untilDone()
    expect(scene.calls).toHaveLength(100)
    expect(consumer.health().status).toBe('ok')
  })

  it('R35 P11: handlers pause their partition, in between the user pauses all of it: flow returns each time', async () => {
    const random = seeded(35)
    const scene = await given.scene({ partitions: 2 })
    let resumes: (() => void)[] = []
    const { consumer } = await scene.join(({ payload }) => {
      if (random() < 0.5) resumes.push(payload.pause())
    })
    for (let round = 0; round < 50; round++) {
      const isPaused = random() < 0.5
      if (isPaused) consumer.pause(random() < 0.5 ? { topic: scene.topic } : undefined)
      await scene.produce([`r${round}`], round % 2)
      if (isPaused) consumer.resume()
      // Resumed twice is resumed once.
      const paused = resumes
      resumes = []
      for (const resume of [...paused, ...paused]) resume()
      if (round % 5 === 0) {
        await given.stage().until(
          () => {
            const late = resumes
            resumes = []
            for (const resume of late) resume()
            return scene.calls.length === round + 1
          },
          () => `${round + 1} calls: there were ${scene.calls.length}`,
        )
      }
    }
    await given.stage().until(
      () => {
        for (const resume of resumes) resume()
        return scene.calls.length === 50
      },
      () => `50 calls: there were ${scene.calls.length}`,
    )
    for (const resume of resumes) resume()
    await scene.untilDone()
    expect(scene.calls).toHaveLength(50)
    const lanes = consumer.health().groups.flatMap(({ partitions }) => partitions)
    expect(lanes.filter(({ state }) => state === 'paused')).toEqual([])
  })
}
