/**
 * Has the requests that publish written by `produce-encoder.ts`. kafkajs hides what a request says in a function that writes it, so
 * it is caught between the two: `broker.produce`, which is given what to publish, and the connections that it hands the
 * request to within the same turn. Where it does not do that, kafkajs writes the request, as without us.
 *
 * Must never happen: a request written of what another one was given; a way into a broker that is left in place.
 */
import { encodeProduce, PRODUCE_VERSIONS, type ProduceRequest } from './produce-encoder'

interface Sending {
  readonly request?: { readonly apiName?: unknown; readonly apiVersion?: unknown; encode?(): Promise<unknown> }
}
interface Pool {
  send?(sending: Sending): Promise<unknown>
}
interface ProducingBroker {
  readonly connectionPool?: Pool
  produce?(request: ProduceRequest): Promise<unknown>
}
/** kafkajs's, of a producer. */
export interface ProducingCluster {
  findBroker?(node: never): Promise<ProducingBroker>
}

/** Leaves a cluster of another shape as it is. `now`: ms since the epoch. */
export function producingFaster(cluster: ProducingCluster | undefined, now: () => number): void {
  const find = cluster?.findBroker
  if (cluster === undefined || typeof find !== 'function') return
  const known = new WeakSet<ProducingBroker>()
  cluster.findBroker = async (node) => {
    const broker = await find.call(cluster, node)
    if (!known.has(broker)) {
      known.add(broker)
      guard(broker, now)
    }
    return broker
  }
}

function guard(broker: ProducingBroker, now: () => number): void {
  const { produce } = broker
  if (typeof produce !== 'function') return
  broker.produce = (given) => {
    const pool = broker.connectionPool
    const send = pool?.send
    if (pool === undefined || typeof send !== 'function' || Object.hasOwn(pool, 'send')) {
      return produce.call(broker, given)
    }
    pool.send = (sending) => send.call(pool, written(sending, given, now))
    try {
      return produce.call(broker, given)
    } finally {
      // It is an own property, and kafkajs's a method of the class.
      delete pool.send
    }
  }
}

function written(sending: Sending, given: ProduceRequest, now: () => number): Sending {
  const { request } = sending
  const encode = request?.encode
  if (request?.apiName !== 'Produce' || typeof encode !== 'function') return sending
  if (!PRODUCE_VERSIONS.includes(request.apiVersion as number)) return sending
  const own = (): Promise<unknown> => {
    const bytes = encodeProduce(given, now())
    // What kafkajs takes for one of its encoders.
    return bytes ? Promise.resolve({ buf: bytes, buffer: bytes }) : encode.call(request)
  }
  return { ...sending, request: { ...request, encode: own } }
}
