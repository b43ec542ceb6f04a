// Plays the vectors on the server at REDIS_URL: node ioredis.js [file ...]; needs the package ioredis.
import crypto from 'node:crypto'
import Redis from 'ioredis'
// sample
import fs from 'node:fs'

// client: new Redis(url, { stringNumbers: true }), as a JavaScript number has 53 bits.
function limiter(client, path) {
  const name = `limiter ${path}`
  client.defineCommand(name, { numberOfKeys: 1, lua: fs.readFileSync(path, 'utf8') })
  // args: amount, period_ns, burst or mode, cost[, now_ns], as strings.
  // Returns [status, remaining, retry_after_ns, reset_after_ns], as BigInt.
  return async function allow(key, ...args) {
    // EVAL once on each connection, then EVALSHA, and EVAL again on NOSCRIPT.
    return (await client[name](key, ...args)).map(BigInt)
  }
}
// end
const vectors = new URL('../../', import.meta.url)
const all = fs.readdirSync(vectors).filter((name) => /_v\d/.test(name)).map((name) => new URL(name, vectors))
const files = (process.argv[2] ? process.argv.slice(2) : all).map((path) => JSON.parse(fs.readFileSync(path)))
const [url, key, counts] = [process.env.REDIS_URL, `tatami:${crypto.randomUUID()}`, { passed: 0, failed: 0 }]
function fit(got, want = '') { // want, where the number lies in it: 7, or 0..7
  const [least, most = least] = want.split('..').map(BigInt)
  return least <= got && got <= most ? want : got
}
async function check(client, name, got, want) {
  counts[got === want ? 'passed' : 'failed']++
  if (got !== want) console.log(`${name}: got ${got}, want ${want}`)
  await client.del(key)
}
const options = { stringNumbers: true, retryStrategy: null } // null: fail where there is no server
for (const client of [2, 3].map((protocol) => new Redis(url, { ...options, protocol }))) {
  await check(client, '64 bits', await client.incrby(key, '9223372036854775807'), '9223372036854775807')
  for (const { script, groups } of files) {
    const path = new URL(`../lua/${script}.lua`, vectors)
    const text = fs.readFileSync(path, 'utf8')
    for (const { argv: lead, setting: { keys, prelude }, tests, streams } of groups) {
      const allow = keys === 1 && !prelude ? limiter(client, path)
        : async (key, ...args) => (await client.eval(prelude + text, keys, ...Array(keys).fill(key), ...args)).map(BigInt)
      for (const { id, key: before, steps } of tests) {
        if (before.kind === 'string') await client.set(key, Buffer.from(before.hex, 'hex'))
        if (before.kind === 'list') await client.rpush(key, 'a')
        let got, want
        for (const { expire, argv, error, reply, state, ttl_ms } of steps) {
          if (expire) await (expire === 'none' ? client.persist(key) : client.pexpire(key, expire))
          const answer = await allow(key, ...lead, ...argv).then(
            (numbers) => numbers.map((n, i) => fit(n, reply[i])),
            (e) => error && e.message.startsWith(error) ? error : e.message)
          const held = await client.type(key) === 'string' ? (await client.getBuffer(key)).toString('hex') : ''
          const matched = new RegExp(`^${state}$`).test(held) ? state : held
          got = `${answer} state ${matched} ttl ${fit(BigInt(await client.pttl(key)), ttl_ms)}`
          want = `${error || reply} state ${state} ttl ${ttl_ms}`
          if (got !== want) break
        }
        await check(client, `${script} ${id}`, got, want)
      }
      for (const { id, now_ns, cost, calls, sha256 } of streams) {
        const replies = []
        for (let now = BigInt(now_ns); replies.length < calls; now += replies.at(-1)[2])
          replies.push(await allow(key, ...lead, cost, String(now)))
        const text = replies.map((reply) => `${reply.join(' ')}\n`).join('')
        await check(client, `${script} ${id}`, crypto.createHash('sha256').update(text).digest('hex'), sha256)
      }
    }
  }
}
console.log(`${counts.passed} passed, ${counts.failed} failed`)
process.exit(counts.failed > 0 ? 1 : 0) // which closes the connections
