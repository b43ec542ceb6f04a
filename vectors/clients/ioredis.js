// Plays the vectors on the server at REDIS_URL: node ioredis.js [file ...]; needs the package ioredis.
import { createHash, randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import Redis from 'ioredis'

// sample
import { readFileSync } from 'node:fs'

// client: new Redis(url, { stringNumbers: true }), as not every 64-bit integer fits
// a JavaScript number.
function limiter(client, path) {
  const name = `limiter ${path}`
  client.defineCommand(name, { numberOfKeys: 1, lua: readFileSync(path, 'utf8') })

  // args: amount, period_ns, burst or mode, cost[, now_ns], as strings.
  // Returns [status, remaining, retry_after_ns, reset_after_ns], as BigInt.
  return async function allow(key, ...args) {
    // EVAL once on each connection, then EVALSHA, and EVAL again on NOSCRIPT.
    const reply = await client[name](key, ...args)
    return reply.map(BigInt)
  }
}
// end

const vectors = new URL('../', import.meta.url)
const all = readdirSync(vectors).filter((name) => /_v\d+\.json$/.test(name)).map((name) => new URL(name, vectors))
const files = (process.argv[2] ? process.argv.slice(2) : all).map((path) => JSON.parse(readFileSync(path, 'utf8')))
const [key, counts] = [`tatami:${randomUUID()}`, { passed: 0, failed: 0 }]

async function check(client, name, got, want) {
  counts[got === want ? 'passed' : 'failed']++
  if (got !== want) console.log(`${name}: got ${got}, want ${want}`)
  await client.del(key)
}

for (const client of [2, 3].map((protocol) => new Redis(process.env.REDIS_URL, { stringNumbers: true, protocol }))) {
  await check(client, '64 bits', await client.incrby(key, '9223372036854775807'), '9223372036854775807')
  for (const { script, groups } of files) {
    const allow = limiter(client, new URL(`../lua/${script}.lua`, vectors))
    for (const [lead, test] of groups.flatMap(({ argv, tests }) => tests.map((test) => [argv, test]))) {
      if (test.key.kind === 'string') await client.set(key, Buffer.from(test.key.hex, 'hex'))
      if (test.key.kind === 'list') await client.rpush(key, 'a')
      if (test.key.ttl_ms) await client.pexpire(key, test.key.ttl_ms)
      let got, want
      for (const { argv, error, reply, state, ttl_ms: [least, most] } of test.steps) {
        const answer = await allow(key, ...lead, ...argv).then(String, (e) => e.message.split(' ')[0])
        const ttl = Number(await client.pttl(key)), kept = least ? least <= ttl && ttl <= most : ttl < 0
        const held = (await client.type(key)) === 'string' ? (await client.getBuffer(key)).toString('hex') : ''
        got = `${answer} state ${held} ttl ${kept ? [least, most] : ttl}`
        want = `${error || reply} state ${state} ttl ${[least, most]}`
        if (got !== want) break
      }
      await check(client, `${script} ${test.id}`, got, want)
    }
    for (const [lead, stream] of groups.flatMap(({ argv, streams }) => streams.map((stream) => [argv, stream]))) {
      const replies = []
      for (let now_ns = BigInt(stream.now_ns); replies.length < stream.calls; now_ns += replies.at(-1)[2])
        replies.push(await allow(key, ...lead, stream.cost, String(now_ns)))
      const text = replies.map((reply) => `${reply.join(' ')}\n`).join('')
      await check(client, `${script} ${stream.id}`, createHash('sha256').update(text).digest('hex'), stream.sha256)
    }
  }
}
console.log(`${counts.passed} passed, ${counts.failed} failed`)
process.exit(counts.failed > 0 ? 1 : 0) // which closes the connections
