import { createClient } from 'redis'
import { script } from './node_redis.js'
import { limiter, reserver } from './tatami.js'

const client = await createClient({ url: process.env.REDIS_URL }).connect()
const allow = limiter(script(client, 'lua/gcra_v2.lua'))
const [status, remaining, retry_after_ns, reset_after_ns] = await allow('rl:{42}', 300, 60_000_000_000, 60, 1)

// A call of a language model, at most 60 a minute, and 1,000,000 tokens a day.
const { reserve, settle } = reserver(script(client, 'lua/limits_v1.lua'))
const calls = { name: 'calls', kind: 'gcra', amount: 60, period_ns: 60_000_000_000, burst: 60 }
const tokens = { name: 'tokens', kind: 'gcra', amount: 1_000_000, period_ns: 86_400_000_000_000, burst: 100_000 }
const reservation = await reserve({ key: '42', limit: calls, cost: 1 }, { key: '42', limit: tokens, cost: 4000 })
if (reservation.status === 1n) {
  const tokensUsed = 500 // as the model's answer says
  await settle(reservation, 1, tokensUsed)
} else {
  console.log('try again in', reservation.retry_after_ns, 'ns')
}
client.destroy()
