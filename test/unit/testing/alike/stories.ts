import { recordingIn } from '../../../helpers/recording'
import { clientStories } from './client-stories'
import { groupStories } from './group-stories'
import { logStories } from './log-stories'
import { handlerStories } from './handler-stories'
import { ownershipStories } from './ownership-stories'
import { producerStories } from './producer-stories'
import type { Story } from './stage'
import { transactionStories } from './transaction-stories'

export const stories: Record<string, Story> = {
  ...logStories,
  ...handlerStories,
  ...groupStories,
  ...clientStories,
  ...producerStories,
  ...transactionStories,
  ...ownershipStories,
}

export const { recorded, record } = recordingIn(new URL('./recorded.json', import.meta.url), Object.keys(stories))
