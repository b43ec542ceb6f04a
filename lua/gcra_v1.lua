-- gcra_v1: the generic cell rate algorithm, its state one double; gcra_v2 is exact.
-- SPDX-License-Identifier: MIT
-- https://github.com/tatami-rate/tatami, where lua/CHANGELOG.md has what is known to be
-- wrong with this text, and lua/README.md explains what it says briefly.
--
-- KEYS[1]   the key; holds the theoretical arrival time (TAT), decimal ns since 1970
-- ARGV      amount period_ns burst cost [now_ns]
--   amount     1 .. period_ns   units a period, sustained
--   period_ns  1 .. 2^52
--   burst      1 .. 2^52 / interval   units that a rested key may spend at once
--   cost       0 .. 2^52   units asked for; 0 only looks and writes nothing
--   now_ns     at most 19 digits; absent or empty: the server's TIME
-- reply     {status, remaining, retry_after_ns, reset_after_ns}
--   status     1 admitted, 0 refused, -1 never: cost is above burst
--   remaining  units that could be admitted now, after this call, or at most 255 ns
--              later; 0 .. burst
--   retry_after_ns  0 when admitted, -1 when never; else the same call is admitted that
--              much later if nothing else comes, and not a nanosecond earlier
--   reset_after_ns  until the key is rested; 0 when it is
-- errors    BADARG, BADSTATE, or the server's own; none of them admits or writes
-- expiry    set by an admitted call of cost above 0, to whole seconds: from the second of
--           the clock to the second in which the TAT lies, and
--   2 s more   with the server's clock; left as it is while that second stays the same
--   61 s more  with a caller's clock, on every write
--
-- It computes, with interval = ceil(period_ns / amount) and tau = interval * burst,
--   base = max(tat, now);  admit iff now >= base + cost * interval - tau;
--   then tat = base + cost * interval
-- on multiples of 256, since doubles from 2^60 to 2^61 (2006 to 2043) are 256
-- apart. Interval and TAT are rounded up, the clock is compared as it is, so:
-- never early, and less than 256 ns late in all, over any number of calls.
-- Clock and burst * interval together are at most 2^61. From 2^53 ns on (104 days), waits
-- are up to 255 ns more.
-- "grid": a multiple of 256 of magnitude at most 2^61, so an exact double.
-- Where a line is written for speed, a comment says so.

-- Check. A local costs less to read than a global or an upvalue.
local KEYS, ARGV, tonumber, redis_pcall = KEYS, ARGV, tonumber, redis.pcall
if #KEYS ~= 1 or #ARGV > 5 then
  return redis.error_reply('BADARG gcra_v1: takes 1 key, then amount period_ns burst cost [now_ns]')
end
local key, now_ns = KEYS[1], ARGV[5]
local period_ns = tonumber(ARGV[2])
if not (period_ns and period_ns >= 1 and period_ns <= 2^52 and period_ns % 1 == 0) then
  return redis.error_reply('BADARG gcra_v1: period_ns must be a whole number from 1 to 2^52')
end
local amount = tonumber(ARGV[1])
if not (amount and amount >= 1 and amount <= period_ns and amount % 1 == 0) then
  return redis.error_reply('BADARG gcra_v1: amount must be a whole number from 1 to period_ns')
end
-- ceil(period_ns / amount): -p % a is what p lacks to a multiple of a, so a divides the sum.
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

-- Clock: whole seconds now_s, and the nanoseconds on top of them in two parts: the grid
-- point grid_sub_ns and below, 0 <= below < 256. Digits need no tonumber, which parses
-- twice: arithmetic reads them where they are used.
local now_s, now_sub_ns, time = 0, now_ns
if not now_ns or now_ns == '' then
  time = redis_pcall('TIME')
  now_s = time[1]
  if not now_s then
    return time -- the server's own error
  end
  now_s, now_sub_ns = now_s + 0, time[2] * 1000
elseif #now_ns > 19 or string.find(now_ns, '%D') then
  return redis.error_reply('BADARG gcra_v1: now_ns must be at most 19 decimal digits')
elseif #now_ns > 9 then
  now_s, now_sub_ns = string.sub(now_ns, 1, -10) + 0, string.sub(now_ns, -9)
end
local below = now_sub_ns % 256
local grid_sub_ns = now_sub_ns - below
local now_grid = now_s * 1e9 + grid_sub_ns -- grid: 1e9 is 512 * 5^9
local up = 0 -- from now_grid to the first grid point at or after now
if below > 0 then
  up = 256
end
if now_grid + up > 2^61 - tau then
  return redis.error_reply('BADARG gcra_v1: now_ns + burst * interval is above 2^61; use gcra_v2')
end

-- Read: ahead = max(tat - now_grid, 0), on the grid. The stored TAT is stored_s and sub_ns.
local state = redis_pcall('GET', key)
local ahead, second, stored_s = 0
if state then
  local sub_ns
  if #state == 19 then -- the usual state, of a clock from 2001 to 2286, by one match
    second, sub_ns = string.match(state, '^([1-9]%d%d%d%d%d%d%d%d%d)(%d+)$')
  end
  if second then
    stored_s = second + 0
  elseif type(state) == 'table' then
    return state -- the server's own error
  elseif string.find(state, '^%d+ [1-9]%d* [1-9]%d*$') then
    return redis.error_reply('BADSTATE gcra_v1: the key holds a TAT with credit; use gcra_v2')
  else
    -- A shorter number is a TAT of a caller's clock near 1970, or of a server whose clock
    -- is not set. Any other is a counter of somebody's, and no TAT.
    local shortest = 1
    if time and now_s >= 1e9 then
      shortest = 19
    end
    if #state < shortest or #state > 19 or state ~= '0' and not string.find(state, '^[1-9]%d*$') then
      return redis.error_reply('BADSTATE gcra_v1: the key holds something else than a decimal TAT')
    end
    -- Fewer than ten digits leave no seconds: a 0 in front makes them a number.
    stored_s, sub_ns = ('0' .. string.sub(state, 1, -10)) + 0, string.sub(state, -9)
  end
  local stored_ns = stored_s * 1e9 -- grid
  sub_ns = sub_ns + -sub_ns % 256 -- a TAT off the grid (gcra_v2 wrote it) goes up to it
  if sub_ns > 2^61 - stored_ns then -- the sum could round down to 2^61
    return redis.error_reply('BADSTATE gcra_v1: the TAT is above 2^61; use gcra_v2')
  end
  ahead = stored_ns + sub_ns - now_grid
  if ahead < 0 then
    ahead = 0
  end
end

-- Decide, and write. On the grid now >= t says the same as now_grid >= t. cost * interval
-- is on the grid up to tau; above it may round, but then the call never fits.
local status, retry, reset = 1, ahead - (tau - cost * interval), ahead - below
if retry <= 0 then
  retry = 0
  if cost > 0 then
    if ahead < up then
      ahead = up -- rested: base is now, up to the grid
    end
    ahead = ahead + cost * interval -- grid
    reset = ahead - below
    local ns = grid_sub_ns + ahead -- grid
    local tat_sub_ns = ns % 1e9 -- exact: 1e9 is on the grid too
    local ahead_s = (ns - tat_sub_ns) / 1e9
    local tat_s = now_s + ahead_s
    -- Known digits are not printed again, which would cost most. And %d takes C's long,
    -- which has 32 bits on some servers: too few from 2038 on.
    local tat
    if second and tat_s == stored_s then
      tat = second .. string.format('%09d', tat_sub_ns)
    elseif tat_s == 0 then
      tat = string.format('%d', tat_sub_ns)
    elseif tat_s >= 2^31 then
      tat = string.format('%.0f%09d', tat_s, tat_sub_ns)
    elseif ahead_s == 0 and time then
      tat = time[1] .. string.format('%09d', tat_sub_ns)
    else
      tat = string.format('%d%09d', tat_s, tat_sub_ns)
    end
    local done
    if tat_s == stored_s and time then
      done = redis_pcall('SET', key, tat, 'KEEPTTL')
    else
      local ttl_s = '2' -- the least, which is not printed either
      if not time then
        ttl_s = string.format('%d', ahead_s + 61)
      elseif ahead_s > 0 then
        ttl_s = string.format('%d', ahead_s + 2)
      end
      done = redis_pcall('SET', key, tat, 'EX', ttl_s)
    end
    if done.err then
      return done
    end
  end
elseif cost > burst then
  status, retry = -1, -1
else
  status = 0
  if retry < 2^53 then
    retry = retry - below
  end
end
-- Waits are exact while ahead is below 2^53; from there on below may be left in.
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
