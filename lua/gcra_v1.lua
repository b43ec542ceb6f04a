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
-- Where a line is written for speed, a comment says so.

-- Check. A local costs less to read than a global or an upvalue.
local KEYS, ARGV, tonumber, call = KEYS, ARGV, tonumber, redis.pcall
if #KEYS ~= 1 or #ARGV > 5 then
  return redis.error_reply('BADARG gcra_v1: takes 1 key, then amount period_ns burst cost [now_ns]')
end
local key, now = KEYS[1], ARGV[5]
local period_ns = tonumber(ARGV[2])
if not (period_ns and period_ns >= 1 and period_ns <= 2^52 and period_ns % 1 == 0) then
  return redis.error_reply('BADARG gcra_v1: period_ns must be a whole number from 1 to 2^52')
end
local amount = tonumber(ARGV[1])
if not (amount and amount >= 1 and amount <= period_ns and amount % 1 == 0) then
  return redis.error_reply('BADARG gcra_v1: amount must be a whole number from 1 to period_ns')
end
-- ceil(period_ns / amount), the quotient of whole numbers that divide
local interval = (period_ns + -period_ns % amount) / amount
local burst = tonumber(ARGV[3])
-- 2^52 / interval rounds to a whole number only if it is one, so this is exact.
if not (burst and burst >= 1 and burst <= 2^52 / interval and burst % 1 == 0) then
  return redis.error_reply('BADARG gcra_v1: burst must be a whole number from 1 to 2^52 / interval, '
    .. 'where interval = ceil(period_ns / amount)')
end
local cost = 1
if ARGV[4] ~= '1' then -- the usual cost need not be parsed
  cost = tonumber(ARGV[4])
  if not (cost and cost >= 0 and cost <= 2^52 and cost % 1 == 0) then
    return redis.error_reply('BADARG gcra_v1: cost must be a whole number from 0 to 2^52')
  end
end
interval = interval + -interval % 256 -- up to the grid
local tau = interval * burst -- grid, at most 2^60: (interval / 256) * burst <= 2^52

-- Clock: now = now_grid + below, 0 <= below < 256. Digits need no tonumber, which
-- parses twice: arithmetic reads them where they are used.
local now_s, now_ns, margin_ms = 0, now, 60000
if not now or now == '' then
  local time = call('TIME')
  if not time[1] then
    return redis.error_reply('BADARG gcra_v1: now_ns is absent and the server refuses TIME: ' .. time.err)
  end
  now_s, now_ns, margin_ms = time[1], time[2] * 1000, 1
elseif #now > 19 or string.find(now, '%D') then
  return redis.error_reply('BADARG gcra_v1: now_ns must be at most 19 decimal digits')
elseif #now > 9 then
  now_s, now_ns = string.sub(now, 1, -10), string.sub(now, -9)
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

-- Read: ahead = max(tat - now_grid, 0), on the grid.
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
    return redis.error_reply('BADSTATE gcra_v1: the key holds something else than a decimal TAT')
  end
  local tat_seconds = tat_s * 1e9 -- grid
  tat_ns = tat_ns + -tat_ns % 256 -- a TAT off the grid (gcra_v2 wrote it) goes up to it
  if tat_ns > 2^61 - tat_seconds then -- the sum could round down to 2^61
    return redis.error_reply('BADSTATE gcra_v1: the TAT is above 2^61; use gcra_v2')
  end
  ahead = tat_seconds + tat_ns - now_grid
  if ahead < 0 then
    ahead = 0
  end
end

-- Decide, and write whole milliseconds, up (from 2^59 ns on perhaps one less, which
-- the margin has). On the grid now >= t says the same as now_grid >= t. The product is
-- on the grid up to tau; above it may round, but then the call is unfittable.
local status, retry, reset = 0, ahead - (tau - cost * interval), ahead - below
if retry <= 0 then
  status, retry = 1, 0
  if cost > 0 then
    if ahead < up then
      ahead = up -- rested: base is now, up to the grid
    end
    ahead = ahead + cost * interval -- grid
    reset = ahead - below
    if ahead >= 2^53 then
      reset = ahead
    end
    local format = string.format
    local done = call('SET', key, format('%d', now_grid + ahead), -- grid
      'PX', format('%d', math.ceil(reset / 1e6) + margin_ms))
    if done.err then
      return done
    end
  end
elseif cost > burst then
  status, retry = -1, -1
elseif retry < 2^53 then
  retry = retry - below
end
-- Waits are exact while ahead is below 2^53 (104 days); from there on below may be left
-- in: up to 255 ns more.
if reset < 0 then
  reset = 0
elseif ahead >= 2^53 then
  reset = ahead
end
-- The first grid point at or after now is what remaining counts from.
local left, remaining = tau - ahead + up, 0
if left >= tau then
  remaining = burst
elseif left >= interval then
  remaining = (left - left % interval) / interval -- exact, in units of 256
end
return {status, remaining, retry, reset}
