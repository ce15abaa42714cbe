/** How much may be in memory: by group, shared out evenly among its lanes. */
import type { Settings } from '../config'
import type { Lane } from './lane'

/** Settled records beyond the frontier are small; so many times the lane's share of records may pile up behind one. */
const SPAN = 10

type Limits = Pick<Settings, 'maxBufferedRecords' | 'maxBufferedBytes'>

/** Whether the lane has more than its share, or than a `part` of it; a lane alone has it all. */
export function exceedsShare(lane: Lane, lanes: number, limits: Limits, part: number): boolean {
  const records = Math.max(1, limits.maxBufferedRecords / lanes) * part
  const bytes = (limits.maxBufferedBytes / lanes) * part
  return lane.held > records || lane.bytes > bytes || lane.tracker.length > records * SPAN
}

/** A fetch may bring more than there is room for by one response, so that is kept to a part of the room. */
export function fetchSizes({ maxBufferedBytes }: Limits): { maxBytes: number; maxBytesPerPartition: number } {
  const maxBytes = Math.max(64 * 1024, Math.min(10 * 1024 * 1024, Math.floor(maxBufferedBytes / 4)))
  return { maxBytes, maxBytesPerPartition: Math.min(384 * 1024, maxBytes) }
}
