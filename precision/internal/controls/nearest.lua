-- GCRA in one double, each step rounded to the nearest: today's nanoseconds are 256
-- apart, so tat + interval rounds the same way at every call, and the errors add up.
local period_ns, burst, cost = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local interval = math.ceil(period_ns / tonumber(ARGV[1]))
local now = tonumber(ARGV[5])
if now + interval * burst >= 2^63 then
  return redis.error_reply('BADARG gcra_v2: now_ns + burst * interval is above 2^63 - 1')
end
local base = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local tat = base + cost * interval
local wait = tat - interval * burst - now
if wait > 0 then
  return {0, math.floor((interval * burst - (base - now)) / interval), wait, base - now}
end
local ttl_s = math.floor(tat / 1e9) - math.floor(now / 1e9) + 61
redis.call('SET', KEYS[1], string.format('%d', tat), 'EX', string.format('%d', ttl_s))
return {1, math.floor((interval * burst - (tat - now)) / interval), 0, tat - now}
