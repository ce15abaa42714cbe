/** What the demo writes down while it runs: what the handler does, and what the consumer reports. */
import type { HandlerContext, MetricHooks } from '../../src/index'

export interface Delivery {
  readonly id: string
  readonly attempt: number
}

/** All records of the main topic, or all of one retry topic, are through. */
export interface Wave {
  /** `main`, or the delay of the retry topic. */
  readonly tier: string
  /** When the first of them was handled, ms since the epoch. */
  readonly from: number
  readonly delivered: number
  readonly dead: number
  /** How many went on to which delay. */
  readonly to: ReadonlyMap<string, number>
}

export interface Journal {
  readonly deliveries: readonly Delivery[]
  readonly hooks: MetricHooks
  readonly retries: { readonly count: number; readonly early: number; readonly latestMs: number }
  /** Called by the handler: when an attempt starts, and when it has worked. */
  started(ctx: HandlerContext): void
  delivered(id: string, ctx: HandlerContext): void
  /** Whether every record is through. */
  isDone(): boolean
}

interface Told {
  readonly now: () => number
  readonly produced: number
  readonly schedule: readonly string[]
  readonly onWave: (wave: Wave) => void
}

export function createJournal({ now, produced, schedule, onWave }: Told): Journal {
  const deliveries: Delivery[] = []
  const retries = { count: 0, early: 0, latestMs: 0 }
  // A record never goes back to a shorter delay, so the tiers are through in this order.
  const waves = ['main', ...schedule].map((tier) => new OpenWave(tier))
  let through = 0

  const wave = (tier: string): OpenWave => {
    const found = waves.find((one) => one.tier === tier)
    if (found === undefined) throw new Error(`there is no tier '${tier}'`)
    return found
  }

  function look(): void {
    for (let open = waves[through]; open !== undefined; open = waves[++through]) {
      const { tier } = open
      const due = through === 0 ? produced : waves.reduce((sum, { to }) => sum + (to.get(tier) ?? 0), 0)
      if (open.ended() < due) return
      if (due > 0) onWave(open)
    }
  }

  return {
    deliveries,
    retries,
    isDone: () => through === waves.length,
    hooks: {
      attempt({ tier, outcome }) {
        if (outcome === 'ok') wave(tier).delivered++
        look()
      },
      retried({ tier, to }) {
        wave(tier).sendTo(to.slice(to.lastIndexOf('.') + 1))
        look()
      },
      deadLettered({ tier }) {
        wave(tier).dead++
        look()
      },
    },
    started({ dueAt, source: { topic } }) {
      const at = topic.lastIndexOf('.retry.')
      const open = wave(at < 0 ? 'main' : topic.slice(at + '.retry.'.length))
      open.from = Math.min(open.from, now())
      if (dueAt === undefined) return
      const lateMs = now() - dueAt
      retries.count++
      if (lateMs < 0) retries.early++
      retries.latestMs = Math.max(retries.latestMs, lateMs)
    },
    delivered: (id, { attempt }) => void deliveries.push({ id, attempt }),
  }
}

class OpenWave implements Wave {
  from = Infinity
  delivered = 0
  dead = 0
  readonly to = new Map<string, number>()

  constructor(readonly tier: string) {}

  sendTo(tier: string): void {
    this.to.set(tier, (this.to.get(tier) ?? 0) + 1)
  }

  ended(): number {
    return this.delivered + this.dead + [...this.to.values()].reduce((sum, one) => sum + one, 0)
  }
}
