// Plays the vectors on the server at REDIS_URL: node node_redis.js [file ...]; needs the package redis.
import { readdirSync } from 'node:fs'
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
const files = (process.argv[2] ? process.argv.slice(2) : all).map((path) => JSON.parse(readFileSync(path, 'utf8')))
const [url, key, counts] = [process.env.REDIS_URL, `tatami:${Math.random()}`, { passed: 0, failed: 0 }]
const commandOptions = { typeMapping: { [RESP_TYPES.NUMBER]: String, [RESP_TYPES.BLOB_STRING]: Buffer } }
async function check(client, name, got, want) {
  counts[got === want ? 'passed' : 'failed']++
  if (got !== want) console.log(`${name}: got ${got}, want ${want}`)
  await client.del(key)
}
for await (const client of [2, 3].map((RESP) => createClient({ url, RESP, commandOptions }).connect())) {
  await check(client, '64 bits', await client.incrBy(key, '9223372036854775807'), '9223372036854775807')
  for (const { script, groups } of files) {
    const allow = limiter(client, new URL(`../lua/${script}.lua`, vectors))
    for (const [lead, { kind, hex, ttl_ms }, test] of groups.flatMap((g) => g.tests.map((t) => [g.argv, t.key, t]))) {
      if (kind !== 'none') await (kind === 'list' ? client.rPush(key, 'a') : client.set(key, Buffer.from(hex, 'hex')))
      if (ttl_ms) await client.pExpire(key, Number(ttl_ms))
      let got, want
      for (const { argv, error, reply, state, ttl_ms: [least, most] } of test.steps) {
        const answer = await allow(key, ...lead, ...argv).then(String, (e) => e.message.split(' ')[0])
        const ttl = Number(await client.pTTL(key)), kept = least ? least <= ttl && ttl <= most : ttl < 0
        const held = (await client.type(key)) === 'string' ? (await client.get(key)).toString('hex') : ''
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
