// Plays the vectors on the server at REDIS_URL: node node_redis.js [file ...]; needs the package redis.
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { createClient } from 'redis'

// sample
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { RESP_TYPES } from 'redis'

function limiter(client, path) {
  const text = readFileSync(path, 'utf8')
  const sha = createHash('sha1').update(text).digest('hex')
  // Not every 64-bit integer fits a JavaScript number: they come as strings.
  const exact = client.withTypeMapping({ [RESP_TYPES.NUMBER]: String })

  // args: amount, period_ns, burst or mode, cost[, now_ns], as strings.
  // Returns [status, remaining, retry_after_ns, reset_after_ns], as BigInt.
  return async function allow(key, ...args) {
    const call = { keys: [key], arguments: args }
    const reply = await exact.evalSha(sha, call).catch((error) => {
      if (!error.message.startsWith('NOSCRIPT')) throw error
      return exact.eval(text, call)
    })
    return reply.map(BigInt)
  }
}
// end

const vectors = new URL('../', import.meta.url)
const all = readdirSync(vectors).filter((name) => /_v\d+\.json$/.test(name)).map((name) => new URL(name, vectors))
const paths = process.argv.length > 2 ? process.argv.slice(2) : all
const key = `tatami:${randomBytes(8).toString('hex')}`
const counts = { passed: 0, failed: 0 }

function check(name, got, want) {
  const equal = isDeepStrictEqual(got, want)
  counts[equal ? 'passed' : 'failed']++
  if (!equal) console.log(name, 'got', got, 'want', want)
}

// Returns what the first wrong step did, or the last one, and the step.
async function play(client, allow, lead, test) {
  if (test.key.kind === 'string') await client.set(key, Buffer.from(test.key.hex, 'hex'))
  if (test.key.kind === 'list') await client.rPush(key, 'a')
  if (test.key.ttl_ms) await client.pExpire(key, Number(test.key.ttl_ms))
  let got, step
  for (step of test.steps) {
    const ran = allow(key, ...lead, ...step.argv)
    const [error, reply] = await ran.then((reply) => ['', reply.map(String)], (e) => [e.message.split(' ')[0], []])
    const ttl = await client.pTTL(key)
    const [least, most] = step.ttl_ms
    const kept = least ? least <= ttl && ttl <= most : ttl < 0 // by number, as ttl is one
    const state = (await client.type(key)) === 'string' ? (await client.get(key)).toString('hex') : ''
    got = { ...step, error, reply, state, ttl_ms: kept ? step.ttl_ms : ttl }
    if (!isDeepStrictEqual(got, step)) break
  }
  return [got, step]
}

async function digest(allow, lead, stream) {
  const sha256 = createHash('sha256')
  let now_ns = BigInt(stream.now_ns)
  for (let call = 0; call < stream.calls; call++) {
    const reply = await allow(key, ...lead, stream.cost, String(now_ns))
    sha256.update(reply.join(' ') + '\n')
    now_ns += reply[2]
  }
  return sha256.digest('hex')
}

for (const RESP of [2, 3]) {
  const connected = await createClient({ url: process.env.REDIS_URL, RESP }).connect()
  const client = connected.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
  const max = '9223372036854775807'
  check('64 bits', await connected.withTypeMapping({ [RESP_TYPES.NUMBER]: String }).incrBy(key, max), max)
  await client.del(key)
  for (const path of paths) {
    const { script, sha1, groups } = JSON.parse(readFileSync(path, 'utf8'))
    const asset = new URL(`../lua/${script}.lua`, vectors)
    check(`${script} SHA1`, createHash('sha1').update(readFileSync(asset)).digest('hex'), sha1)
    const allow = limiter(connected, asset)
    for (const { argv, tests, streams } of groups) {
      for (const test of tests) {
        check(`${script} ${test.id}`, ...(await play(client, allow, argv, test)))
        await client.del(key)
      }
      for (const stream of streams) {
        check(`${script} ${stream.id}`, await digest(allow, argv, stream), stream.sha256)
        await client.del(key)
      }
    }
  }
  await connected.close()
}

console.log(`${counts.passed} passed, ${counts.failed} failed`)
process.exitCode = counts.failed > 0 ? 1 : 0
