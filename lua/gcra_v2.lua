-- gcra_v2: the generic cell rate algorithm, exact to the nanosecond.
--
-- KEYS[1]   the key; holds the theoretical arrival time (TAT), decimal ns
-- ARGV      amount period_ns burst cost [now_ns]
--   amount     1 .. period_ns   units a period, sustained
--   period_ns  1 .. 2^52
--   burst      1 .. 2^52 / interval   units that a rested key may spend at once
--   cost       0 .. 2^52   units asked for; 0 only looks and writes nothing
--   now_ns     at most 19 digits; absent or empty: the server's TIME
-- reply     {status, remaining, retry_after_ns, reset_after_ns}
--   status     1 admitted, 0 refused, -1 cost is above burst
-- errors    BADARG, BADSTATE, or the server's own; none of them admits or writes
--
-- It computes, with interval = ceil(period_ns / amount) and tau = interval * burst,
--   base = max(tat, now);  admit iff now >= base + cost * interval - tau;
--   then tat = base + cost * interval
-- exactly, for clocks to 2262: an instant is two whole doubles, seconds and
-- nanoseconds below 10^9, and a difference below 2^53 ns is one.
-- Where a line is written for speed, a comment says so.

-- Check. A local costs less to read than a global or an upvalue.
local KEYS, ARGV, tonumber, call = KEYS, ARGV, tonumber, redis.pcall
if #KEYS ~= 1 or #ARGV > 5 then
  return redis.error_reply('BADARG gcra_v2: takes 1 key, then amount period_ns burst cost [now_ns]')
end
local key, now = KEYS[1], ARGV[5]
local period_ns = tonumber(ARGV[2])
if not (period_ns and period_ns >= 1 and period_ns <= 2^52 and period_ns % 1 == 0) then
  return redis.error_reply('BADARG gcra_v2: period_ns must be a whole number from 1 to 2^52')
end
local amount = tonumber(ARGV[1])
if not (amount and amount >= 1 and amount <= period_ns and amount % 1 == 0) then
  return redis.error_reply('BADARG gcra_v2: amount must be a whole number from 1 to period_ns')
end
-- ceil(period_ns / amount), the quotient of whole numbers that divide
local interval = (period_ns + -period_ns % amount) / amount
local burst = tonumber(ARGV[3])
-- 2^52 / interval rounds to a whole number only if it is one, so this is exact.
if not (burst and burst >= 1 and burst <= 2^52 / interval and burst % 1 == 0) then
  return redis.error_reply('BADARG gcra_v2: burst must be a whole number from 1 to 2^52 / interval, '
    .. 'where interval = ceil(period_ns / amount)')
end
local cost = 1
if ARGV[4] ~= '1' then -- the usual cost need not be parsed
  cost = tonumber(ARGV[4])
  if not (cost and cost >= 0 and cost <= 2^52 and cost % 1 == 0) then
    return redis.error_reply('BADARG gcra_v2: cost must be a whole number from 0 to 2^52')
  end
end
local tau = interval * burst -- at most 2^52

-- Clock. Digits need no tonumber, which parses twice: arithmetic reads them.
local now_s, now_ns, margin_ms = 0, now, 60000
if not now or now == '' then
  local time = call('TIME')
  if not time[1] then
    return redis.error_reply('BADARG gcra_v2: now_ns is absent and the server refuses TIME: ' .. time.err)
  end
  now_s, now_ns, margin_ms = time[1] + 0, time[2] * 1000, 1
elseif #now > 19 or string.find(now, '%D') then
  return redis.error_reply('BADARG gcra_v2: now_ns must be at most 19 decimal digits')
else
  if #now > 9 then
    now_s, now_ns = string.sub(now, 1, -10) + 0, string.sub(now, -9)
  end
  now_ns = now_ns + 0
end
-- From 9218868436 s on, 2^52 ns lead past 2^63 - 1; the sum is exact where it decides.
if now_s >= 9218868436 and (9223372036 - now_s) * 1e9 + (854775807 - now_ns) < tau then
  return redis.error_reply('BADARG gcra_v2: now_ns + burst * interval is above 2^63 - 1')
end

-- Read: ahead = max(tat - now, 0).
local state = call('GET', key)
local ahead = 0
if state then
  local length, tat_s, tat_ns = #state
  if length == 19 then -- a clock from 2001 to 2286: one match saves 700 instructions
    tat_s, tat_ns = string.match(state, '^([1-9]%d%d%d%d%d%d%d%d%d)(%d+)$')
  elseif length == 0 and state.err then -- an error is a table, of length 0
    return state
  elseif length < 19 and (string.find(state, '^[1-9]%d*$') or state == '0') then
    tat_s, tat_ns = 0, state
    if length > 9 then
      tat_s, tat_ns = string.sub(state, 1, -10), string.sub(state, -9)
    end
  end
  if not tat_s then
    return redis.error_reply('BADSTATE gcra_v2: the key holds something else than a decimal TAT')
  end
  ahead = (tat_s - now_s) * 1e9 + (tat_ns - now_ns) -- exact below 2^53
  if ahead < 0 then
    ahead = 0
  elseif ahead >= 2^53 then -- 104 days: up to 4096 ns more, so that a sum that rounds
    -- is not early; and no more than a reply holds
    ahead = math.min(ahead + 2048, 2^63 - 1024)
  end
end

-- Decide, and write whole milliseconds, up. cost * interval is exact up to tau; above
-- 2^53 it may round, but then the call is unfittable.
local status, retry = 0, ahead - (tau - cost * interval)
if retry <= 0 then
  status, retry = 1, 0
  if cost > 0 then
    ahead = ahead + cost * interval -- at most tau
    local format = string.format
    local ns = now_ns + ahead -- below 2^52 + 2^30
    local tat_ns = ns % 1e9
    local tat_s = now_s + (ns - tat_ns) / 1e9
    local tat = format('%d%09d', tat_s, tat_ns)
    if tat_s == 0 then
      tat = format('%d', tat_ns)
    end
    local done = call('SET', key, tat, 'PX', format('%d', (ahead + -ahead % 1e6) / 1e6 + margin_ms))
    if done.err then
      return done
    end
  end
elseif cost > burst then
  status, retry = -1, -1
end
local left, remaining = tau - ahead, 0
if left >= interval then
  remaining = (left - left % interval) / interval
end
return {status, remaining, retry, ahead}
