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
async function check(client, name, got, want) {
  counts[got === want ? 'passed' : 'failed']++
  if (got !== want) console.log(`${name}: got ${got}, want ${want}`)
  await client.del(key)
}
const options = { stringNumbers: true, retryStrategy: null } // null: fail where there is no server
for (const client of [2, 3].map((protocol) => new Redis(url, { ...options, protocol }))) {
  await check(client, '64 bits', await client.incrby(key, '9223372036854775807'), '9223372036854775807')
  for (const { script, groups } of files) {
    const allow = limiter(client, new URL(`../lua/${script}.lua`, vectors))
    for (const { argv: lead, tests, streams } of groups) {
      for (const { id, key: before, steps } of tests) {
        if (before.kind === 'string') await client.set(key, Buffer.from(before.hex, 'hex'))
        if (before.kind === 'list') await client.rpush(key, 'a')
        if (before.ttl_ms) await client.pexpire(key, before.ttl_ms)
        let got, want
        for (const { argv, error, reply, state, ttl_ms: [least, most] } of steps) {
          const answer = await allow(key, ...lead, ...argv).then(String, (e) => e.message.split(' ')[0])
          const held = await client.type(key) === 'string' ? (await client.getBuffer(key)).toString('hex') : ''
          const ttl = Number(await client.pttl(key)), kept = least ? least <= ttl && ttl <= most : ttl < 0
          got = `${answer} state ${held} ttl ${kept ? [least, most] : ttl}`
          want = `${error || reply} state ${state} ttl ${[least, most]}`
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
