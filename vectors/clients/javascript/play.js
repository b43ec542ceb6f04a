// What play_ioredis.js and play_node_redis.js do: they play the vectors, or make the reservations that
// their input says where - stands for the files.
import crypto from 'node:crypto'
import fs from 'node:fs'
import readline from 'node:readline'
import { reserver } from './tatami.js'

const vectors = new URL('../../', import.meta.url)
const lua = (script) => new URL(`../lua/${script}.lua`, vectors)

// reserve,key,kind,amount,period_ns,burst,name,cost,key,... or settle,used,...
async function reservations(call) {
  const { reserve, settle } = reserver(call)
  let held
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, ...words] = line.split(',')
    try {
      if (verb === 'reserve') {
        const asks = []
        for (; words.length > 0; asks.push(words.splice(0, 7)));
        held = await reserve(...asks.map(([key, kind, amount, period_ns, burst, name, cost]) =>
          ({ key, limit: { kind, amount, period_ns, burst, name }, cost })))
        console.log([held.status, held.retry_after_ns, held.binds, ...held.results.flat()].join('|'))
      } else {
        await settle(held, ...words)
        console.log('settled')
      }
    } catch (e) {
      console.log('error', e.message)
    }
  }
}

// fit is want, where got is like it: 7, a number in 0..7, a text, a list of these.
function fit(got, want) {
  if (Array.isArray(got)) return Array.isArray(want) && got.length === want.length ? got.map((n, i) => fit(n, want[i])) : got
  const [least, most] = String(want).split('..')
  return most && BigInt(least) <= BigInt(got) && BigInt(got) <= BigInt(most) ? want : String(got)
}

const counts = { passed: 0, failed: 0 }
function check(label, got, want) {
  counts[got === want ? 'passed' : 'failed']++
  if (got !== want) console.log(`${label}: got ${got}, want ${want}`)
}

// connect makes a client of a protocol, script its call of a path. send sends a command of words: what it
// answers has numbers as strings, and other strings as bytes.
export async function play(connect, script, send) {
  if (process.argv[2] === '-') return process.exit(await reservations(script(await connect(2), lua('limits_v1'))))
  const all = fs.readdirSync(vectors).filter((file) => /_v\d/.test(file)).map((file) => new URL(file, vectors))
  const files = (process.argv[2] ? process.argv.slice(2) : all).map((path) => JSON.parse(fs.readFileSync(path)))
  const name = `tatami:${crypto.randomUUID()}`
  for (const client of [await connect(2), await connect(3)]) {
    check('64 bits', await send(client, ['INCRBY', name, '9223372036854775807']), '9223372036854775807')
    await send(client, ['DEL', name])
    for (const file of files) await playFile(client, file, name, script, (...words) => send(client, words))
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`)
  process.exit(counts.failed > 0 ? 1 : 0) // which closes the connections
}

async function playFile(client, file, name, script, send) {
  const text = fs.readFileSync(lua(file.script), 'utf8')
  for (const { argv: lead, setting: { keys: which, prelude }, tests, streams } of file.groups) {
    const call = prelude === '' ? script(client, lua(file.script))
      : (keys, args) => send('EVAL', prelude + text, String(keys.length), ...keys, ...args)
    for (const { id, keys: before, steps } of tests) {
      const keys = before.map((_, i) => `${name}:${i}`)
      const named = { each: keys, none: [], again: [...keys, keys[0]] }[which]
      for (const [i, { kind, hex }] of before.entries()) {
        if (kind === 'string') await send('SET', keys[i], Buffer.from(hex, 'hex'))
        if (kind === 'list') await send('RPUSH', keys[i], 'a')
      }
      let got, want
      for (const { expire, argv, error, reply, state, ttl_ms } of steps) {
        for (const [i, ms] of expire.entries())
          if (ms) await (ms === 'none' ? send('PERSIST', keys[i]) : send('PEXPIRE', keys[i], ms))
        const answer = await call(named, [...lead, ...argv]).then((answer) => fit(answer, reply),
          (e) => error && e.message.startsWith(error) ? error : e.message)
        const seen = []
        for (const [i, key] of keys.entries()) {
          const held = String(await send('TYPE', key)) === 'string' ? (await send('GET', key)).toString('hex') : ''
          seen.push([new RegExp(`^${state[i]}$`).test(held) ? state[i] : held, fit(await send('PTTL', key), ttl_ms[i])])
        }
        got = JSON.stringify([answer, seen])
        want = JSON.stringify([error || reply, state.map((held, i) => [held, ttl_ms[i]])])
        if (got !== want) break
      }
      check(`${file.script} ${id}`, got, want)
      await send('DEL', ...keys)
    }
    for (const { id, now_ns, cost, calls, sha256 } of streams) {
      const replies = []
      for (let now = BigInt(now_ns); replies.length < calls; now += BigInt(replies.at(-1)[2]))
        replies.push(await call([name], [...lead, cost, String(now)]))
      const text = replies.map((reply) => `${reply.join(' ')}\n`).join('')
      check(`${file.script} ${id}`, crypto.createHash('sha256').update(text).digest('hex'), sha256)
      await send('DEL', name)
    }
  }
}
