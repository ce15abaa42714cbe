/**
 * The faults of kafkajs that the fake copies, as stories told to kafkajs on a real broker and to the fake. As in
 * test/unit/testing/alike: traps.test.ts holds the fake to recorded.json, traps.real.test.ts holds recorded.json to
 * kafkajs (RECORD=1 writes it anew).
 */
import { recordingIn } from '../helpers/recording'
import { commitStories } from './commit-stories'
import { generationStories } from './generation-stories'
import { loopStories } from './loop-stories'
import { ruleStories } from './rule-stories'
import { shutdownStories } from './shutdown-stories'
import type { Story } from './staging'

export const stories: Record<string, Story> = {
  ...loopStories,
  ...generationStories,
  ...commitStories,
  ...shutdownStories,
  ...ruleStories,
}

export const { recorded, record } = recordingIn(new URL('./recorded.json', import.meta.url), Object.keys(stories))
