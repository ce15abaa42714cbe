/** AlterUserScramCredentials v0, which kafkajs does not have: takes a user's SCRAM-SHA-512 password away. */
import { connect } from 'node:net'

const API = 51
const SCRAM_SHA_512 = 2

export async function dropScram(port: number, user: string): Promise<void> {
  const name = Buffer.from(user)
  const none = Buffer.from([0])
  const request = Buffer.concat([
    // Header: api, version, correlation, no client id, no tags.
    Buffer.from([0, API, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0]),
    // One deletion, no upsertion; compact lengths are one more than they count.
    Buffer.from([2, name.length + 1]),
    name,
    Buffer.from([SCRAM_SHA_512]),
    none,
    Buffer.from([1]),
    none,
  ])
  const size = Buffer.alloc(4)
  size.writeInt32BE(request.length)
  const answer = await new Promise<Buffer>((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(Buffer.concat([size, request])))
    let all = Buffer.alloc(0)
    socket.on('error', reject)
    socket.on('data', (part) => {
      all = Buffer.concat([all, part])
      if (all.length < 4 || all.length < 4 + all.readInt32BE(0)) return
      socket.destroy()
      resolve(all.subarray(4))
    })
  })
  // Correlation 4, tags 1, throttle 4, count 1, then the user and its error code.
  const error = answer.readInt16BE(10 + answer.readUInt8(10))
  if (error !== 0) throw new Error(`the broker did not take the password of ${user} away: error ${error}`)
}
