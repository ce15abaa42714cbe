/**
 * kafkajs 2.2.4 looks after each answer whether requests wait, and has itself woken to look again: about every millisecond, for
 * each connection that has ever had an answer, for as long as it lives (the time of the timer is negative, of which Node 24
 * warns). That is nearly all that an idle client costs. Here it is woken only where requests do wait: behind a broker that
 * throttles, or behind `maxInFlightRequests`. What comes later looks for itself before it is sent.
 */
export interface RequestQueueLike {
  readonly pending?: readonly unknown[]
  scheduleCheckPendingRequests?(): void
  destroy?(): void
}

/** Leaves one of another shape as it is. */
export function withoutIdleTimer(queue: RequestQueueLike | undefined): void {
  const schedule = queue?.scheduleCheckPendingRequests
  if (queue === undefined || typeof schedule !== 'function' || !Array.isArray(queue.pending)) return
  queue.scheduleCheckPendingRequests = () => {
    if (queue.pending!.length > 0) schedule.call(queue)
  }
}
