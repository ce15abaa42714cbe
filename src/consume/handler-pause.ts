import type { Emitter } from '../observe'
import type { Lane } from './lane'

/** `payload.pause()`: the lane starts nothing until the returned function is called. `by` is the call that asks for it. */
export function pauseLane(
  by: { readonly lane: Lane; pauses: number },
  emitter: Emitter,
  changed: (lane: Lane) => void,
): () => void {
  const { lane } = by
  by.pauses++
  lane.handlerPauses++
  changed(lane)
  const told = { by: 'handler', topic: lane.topic, partition: lane.partition } as const
  emitter.emit('paused', told)
  let resumed = false
  return () => {
    if (resumed) return
    resumed = true
    by.pauses--
    lane.handlerPauses--
    emitter.emit('resumed', told)
    changed(lane)
  }
}
