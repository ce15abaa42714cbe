import { recordingIn } from '../../../../helpers/recording'
import { nodesStories } from './stories'

export const { recorded, record } = recordingIn(new URL('./recorded.json', import.meta.url), Object.keys(nodesStories))
