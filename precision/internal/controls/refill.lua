-- A token bucket that refills whole units at each call and counts the time from
-- there: the part of a unit that had grown since the last call is lost. The level is
-- kept as the instant at which the bucket is full, like a TAT.
local period_ns, burst, cost = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local interval = math.ceil(period_ns / tonumber(ARGV[1]))
local now = tonumber(ARGV[5])
if now + interval * burst >= 2^63 then
  return redis.error_reply('BADARG gcra_v2: now_ns + burst * interval is above 2^63 - 1')
end
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local tokens = math.floor(burst - (full - now) / interval)
local status, retry = 0, (cost - tokens) * interval
if tokens >= cost then
  status, retry, tokens = 1, 0, tokens - cost
end
local reset = (burst - tokens) * interval
local ttl_s = math.floor((now + reset) / 1e9) - math.floor(now / 1e9) + 61
redis.call('SET', KEYS[1], string.format('%d', now + reset), 'EX', string.format('%d', ttl_s))
return {status, tokens, retry, reset}
