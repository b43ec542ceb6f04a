-- gcra_v1: the generic cell rate algorithm, its state one double.
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
-- on multiples of 256, since doubles from 2^60 to 2^61 (2006 to 2043) are 256
-- apart. Interval and TAT are rounded up, the clock is compared as it is, so:
-- never early, and less than 256 ns late in all, over any number of calls.
-- "grid": a multiple of 256 of magnitude at most 2^61, so an exact double.
-- whole: whole(p / a) for whole p, a below 2^53: the quotient's rounding moves it
-- by less than 1 / a, so floor and ceil of it are those of the true quotient.

-- Check.
if #KEYS ~= 1 or #ARGV > 5 then
  return redis.error_reply('BADARG gcra_v1: takes 1 key, then amount period_ns burst cost [now_ns]')
end
local period_ns = tonumber(ARGV[2])
if not (period_ns and period_ns >= 1 and period_ns <= 2^52 and period_ns % 1 == 0) then
  return redis.error_reply('BADARG gcra_v1: period_ns must be a whole number from 1 to 2^52')
end
local amount = tonumber(ARGV[1])
if not (amount and amount >= 1 and amount <= period_ns and amount % 1 == 0) then
  return redis.error_reply('BADARG gcra_v1: amount must be a whole number from 1 to period_ns')
end
local interval = math.ceil(period_ns / amount) -- whole
local burst = tonumber(ARGV[3])
-- 2^52 / interval rounds to a whole number only if it is one, so this is exact.
if not (burst and burst >= 1 and burst <= 2^52 / interval and burst % 1 == 0) then
  return redis.error_reply('BADARG gcra_v1: burst must be a whole number from 1 to 2^52 / interval, '
    .. 'where interval = ceil(period_ns / amount)')
end
local cost = tonumber(ARGV[4])
if not (cost and cost >= 0 and cost <= 2^52 and cost % 1 == 0) then
  return redis.error_reply('BADARG gcra_v1: cost must be a whole number from 0 to 2^52')
end
interval = math.ceil(interval / 256) * 256 -- up to the grid
local tau = interval * burst -- grid: (interval / 256) * burst <= 2^44 + 2^52

-- Clock: now = now_grid + below, 0 <= below < 256.
local now, margin_ms = ARGV[5], 60000
local now_s, now_ns
if now and now ~= '' then
  if #now > 19 or string.find(now, '%D') then
    return redis.error_reply('BADARG gcra_v1: now_ns must be at most 19 decimal digits')
  end
  now_s = tonumber(string.sub(now, 1, -10)) or 0
  now_ns = tonumber(string.sub(now, -9))
else
  local time = redis.pcall('TIME')
  if time.err then
    return redis.error_reply('BADARG gcra_v1: now_ns is absent and the server refuses TIME: ' .. time.err)
  end
  now_s = tonumber(time[1])
  now_ns = tonumber(time[2]) * 1000
  margin_ms = 1
end
local below = now_ns % 256
local now_grid = now_s * 1e9 + (now_ns - below) -- grid: 1e9 is 512 * 5^9
local up = 0 -- from now_grid to the first grid point at or after now
if below > 0 then
  up = 256
end
if now_grid + up > 2^61 - tau then
  return redis.error_reply('BADARG gcra_v1: now_ns + burst * interval is above 2^61; use gcra_v2')
end

-- Read: ahead = tat - now_grid, on the grid.
local state = redis.pcall('GET', KEYS[1])
local ahead = 0
if state then
  if type(state) == 'table' then
    return state
  end
  if #state > 19 or not (state == '0' or string.find(state, '^[1-9]%d*$')) then
    return redis.error_reply('BADSTATE gcra_v1: the key holds something else than a decimal TAT')
  end
  -- a TAT off the grid (gcra_v2 wrote it) goes up to it
  local tat_seconds = (tonumber(string.sub(state, 1, -10)) or 0) * 1e9
  local tat_rest = math.ceil(tonumber(string.sub(state, -9)) / 256) * 256
  if tat_rest > 2^61 - tat_seconds then -- the sum could round down to 2^61
    return redis.error_reply('BADSTATE gcra_v1: the TAT is above 2^61; use gcra_v2')
  end
  ahead = tat_seconds + tat_rest - now_grid
end

-- Decide. On the grid now >= t says the same as now_grid >= t.
local status, retry = 1, 0
if cost > burst then
  status, retry = -1, -1
else
  local spend = cost * interval -- grid, at most tau
  local wait = ahead - (tau - spend)
  if wait > 0 then
    status, retry = 0, wait
    if wait < 2^53 then
      retry = wait - below -- exact; beyond (104 days) up to 255 ns more
    end
  elseif cost > 0 then
    if ahead < up then
      ahead = up -- rested: base is now, up to the grid
    end
    ahead = ahead + spend
  end
end
local reset = ahead
if ahead < 2^53 then
  reset = ahead - below -- exact; beyond up to 255 ns more
end
if reset < 0 then
  reset = 0
end
local remaining = math.floor((tau - ahead + up) / interval) -- whole, in units of 256
if remaining > burst then
  remaining = burst
elseif remaining < 0 then
  remaining = 0
end

-- Write: whole milliseconds, up.
if status == 1 and cost > 0 then
  local done = redis.pcall('SET', KEYS[1], string.format('%d', now_grid + ahead), -- grid
    'PX', string.format('%d', math.ceil(reset / 1e6) + margin_ms))
  if done.err then
    return done
  end
end
return {status, remaining, retry, reset}
