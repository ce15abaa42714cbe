/** How a suite is run on a stage: `describe` for each promise, a scene for each test, and nothing left behind. */
import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { Scene, type SceneOptions } from './scene'
import type { Stage } from './stage'

export interface Given {
  stage(): Stage
  scene(options?: SceneOptions): Promise<Scene>
}

export type Suite = (given: Given) => void

export function describeOn(name: string, makeStage: () => Promise<Stage>, suite: Suite): void {
  describe(name, () => {
    let stage: Stage | undefined
    let scenes: Scene[] = []
    beforeAll(async () => {
      stage = await makeStage()
    })
    afterEach(async () => {
      const open = scenes
      scenes = []
      for (const scene of open) await scene.close()
    })
    afterAll(async () => {
      await stage?.close()
    })
    suite({
      stage: () => stage!,
      async scene(options) {
        const scene = await Scene.open(stage!, options)
        scenes.push(scene)
        return scene
      },
    })
  })
}
