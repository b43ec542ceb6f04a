require_relative 'redis_rb'

client = Redis.new(url: ENV.fetch('REDIS_URL'))
allow = limiter(client, 'lua/gcra_v2.lua')
status, remaining, retry_after_ns, reset_after_ns = allow.('rl:{42}', 300, 60_000_000_000, 60, 1)

# A call of a language model, at most 60 a minute, and 1,000,000 tokens a day.
reserve, settle = reserver(client, 'lua/limits_v1.lua')
calls = { name: 'calls', kind: 'gcra', amount: 60, period_ns: 60_000_000_000, burst: 60 }
tokens = { name: 'tokens', kind: 'gcra', amount: 1_000_000, period_ns: 86_400_000_000_000, burst: 100_000 }
reservation = reserve.(['42', calls, 1], ['42', tokens, 4000])
if reservation.status == 1
  tokens_used = 500 # as the model's answer says
  settle.(reservation, 1, tokens_used)
else
  puts "try again in #{reservation.retry_after_ns} ns"
end
