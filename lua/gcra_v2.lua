-- gcra_v2: the generic cell rate algorithm, exact to the nanosecond.
-- SPDX-License-Identifier: MIT
-- https://github.com/tatami-rate/tatami, where lua/CHANGELOG.md has what is known to be
-- wrong with this text, and lua/README.md explains what it says briefly.
--
-- KEYS[1]   the key; holds the theoretical arrival time (TAT), decimal ns since 1970, or
--           `TAT credit last` once limits_v1 has given units back: credit is their sum in
--           ns, last the largest TAT that spending left
-- ARGV      amount period_ns burst cost [now_ns]
--   amount     1 .. period_ns   units a period, sustained
--   period_ns  1 .. 2^52
--   burst      1 .. 2^52 / interval   units that a rested key may spend at once
--   cost       0 .. 2^52   units asked for; 0 only looks and writes nothing
--   now_ns     at most 19 digits; absent or empty: the server's TIME
-- reply     {status, remaining, retry_after_ns, reset_after_ns}
--   status     1 admitted, 0 refused, -1 never: cost is above burst
--   remaining  units that could be admitted now, after this call; 0 .. burst
--   retry_after_ns  0 when admitted, -1 when never; else the same call is admitted that
--              much later if nothing else comes, and not a nanosecond earlier
--   reset_after_ns  until the key is rested; 0 when it is
-- errors    BADARG, BADSTATE, or the server's own; none of them admits or writes
-- expiry    set by an admitted call of cost above 0, to whole seconds: from the second of
--           the clock to the second in which the TAT, or last, lies, and
--   2 s more   with the server's clock; left as it is while that second stays the same
--   61 s more  with a caller's clock, on every write
--
-- It computes, with interval = ceil(period_ns / amount) and tau = interval * burst,
--   base = max(tat, now);  admit iff now >= base + cost * interval - tau;
--   then tat = base + cost * interval
-- exactly, for clocks to 2262: an instant is two whole doubles, seconds (_s) and the
-- nanoseconds on top of them (_sub_ns, below 10^9); a difference below 2^53 ns is one.
-- From 2^53 ns on (104 days), waits are up to 4096 ns more, and end at 2^63 - 1024.
-- Where a line is written for speed, a comment says so.

-- Check. A local costs less to read than a global or an upvalue.
local KEYS, ARGV, tonumber, redis_pcall = KEYS, ARGV, tonumber, redis.pcall
if #KEYS ~= 1 or #ARGV > 5 then
  return redis.error_reply('BADARG gcra_v2: takes 1 key, then amount period_ns burst cost [now_ns]')
end
local key, now_ns = KEYS[1], ARGV[5]
local period_ns = tonumber(ARGV[2])
if not (period_ns and period_ns >= 1 and period_ns <= 2^52 and period_ns % 1 == 0) then
  return redis.error_reply('BADARG gcra_v2: period_ns must be a whole number from 1 to 2^52')
end
local amount = tonumber(ARGV[1])
if not (amount and amount >= 1 and amount <= period_ns and amount % 1 == 0) then
  return redis.error_reply('BADARG gcra_v2: amount must be a whole number from 1 to period_ns')
end
-- ceil(period_ns / amount): -p % a is what p lacks to a multiple of a, so a divides the sum.
local interval = (period_ns + -period_ns % amount) / amount
local burst = tonumber(ARGV[3]) or 0
local tau = interval * burst -- exact up to 2^52, and rounds to no less from there on
if not (burst >= 1 and tau <= 2^52 and burst % 1 == 0) then
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

-- Clock. Digits need no tonumber, which parses twice: arithmetic reads them.
local now_s, now_sub_ns, time = 0, now_ns
if not now_ns or now_ns == '' then
  time = redis_pcall('TIME')
  now_s = time[1]
  if not now_s then
    return time -- the server's own error
  end
  now_s, now_sub_ns = now_s + 0, time[2] * 1000
elseif #now_ns > 19 or string.find(now_ns, '%D') then
  return redis.error_reply('BADARG gcra_v2: now_ns must be at most 19 decimal digits')
else
  if #now_ns > 9 then
    now_s, now_sub_ns = string.sub(now_ns, 1, -10) + 0, string.sub(now_ns, -9)
  end
  now_sub_ns = now_sub_ns + 0
end
-- A reply holds 2^63 - 1 ns, which is 9223372036.854775807 s. Less 2^52 ns, the most that
-- tau can be, it is 9218868437.2 s: only from that second on is there anything to compute.
-- Up to 9223372036 s the sum is below 2^53, so exact; after it, it is below 0 anyhow.
if now_s >= 9218868437 and (9223372036 - now_s) * 1e9 + (854775807 - now_sub_ns) < tau then
  return redis.error_reply('BADARG gcra_v2: now_ns + burst * interval is above 2^63 - 1')
end

-- Read: ahead = max(tat - now, 0). The stored TAT is stored_s and sub_ns.
local state = redis_pcall('GET', key)
local ahead, second, stored_s, credit, last, last_s, last_sub_ns = 0
if state then
  local sub_ns
  if #state == 19 then -- the usual state, of a clock from 2001 to 2286, by one match
    second, sub_ns = string.match(state, '^([1-9]%d%d%d%d%d%d%d%d%d)(%d+)$')
  end
  if second then
    stored_s = second + 0
  elseif type(state) == 'table' then
    return state -- the server's own error
  else
    local tat
    tat, credit, last = string.match(state, '^(%d+) ([1-9]%d*) ([1-9]%d*)$')
    tat = tat or state
    -- A shorter number is a TAT of a caller's clock near 1970, or of a server whose clock
    -- is not set. Any other is a counter of somebody's, and no TAT.
    local shortest = 1
    if time and now_s >= 1e9 then
      shortest = 19
    end
    if #tat < shortest or #tat > 19 or tat ~= '0' and not string.find(tat, '^[1-9]%d*$')
      or last and (#last < shortest or #last > 19) then
      return redis.error_reply('BADSTATE gcra_v2: the key holds something else than a decimal TAT')
    end
    -- Fewer than ten digits leave no seconds: a 0 in front makes them a number.
    stored_s, sub_ns = ('0' .. string.sub(tat, 1, -10)) + 0, string.sub(tat, -9)
    if last then
      last_s, last_sub_ns = ('0' .. string.sub(last, 1, -10)) + 0, string.sub(last, -9)
    end
  end
  ahead = (stored_s - now_s) * 1e9 + (sub_ns - now_sub_ns) -- exact below 2^53
  if ahead < 0 then
    ahead = 0
  end
end

-- Decide, and write. cost * interval is exact up to tau; above 2^53 it may round, but
-- then the call never fits.
local status, room = 1, tau - cost * interval
local retry = ahead - room
if retry <= 0 then
  retry = 0
  if cost > 0 then
    ahead = ahead + cost * interval -- at most tau
    local ns = now_sub_ns + ahead -- below 2^52 + 2^30
    local tat_sub_ns = ns % 1e9
    local tat_s = now_s + (ns - tat_sub_ns) / 1e9
    -- Known digits are not printed again, which would cost most. And %d takes C's long,
    -- which has 32 bits on some servers: too few from 2038 on.
    local tat, ttl_s -- without ttl_s the expiry stays
    if second and time and tat_s == stored_s then
      tat = second .. string.format('%09d', tat_sub_ns)
    else
      if tat_s == 0 then
        tat = string.format('%d', tat_sub_ns)
      elseif time and tat_s == now_s then
        tat = time[1] .. string.format('%09d', tat_sub_ns)
      elseif tat_s >= 2^31 then
        tat = string.format('%.0f%09d', tat_s, tat_sub_ns)
      else
        tat = string.format('%d%09d', tat_s, tat_sub_ns)
      end
      local expiry_s, was_s = tat_s, stored_s
      if credit then
        was_s = last_s
        if (last_s - tat_s) * 1e9 + (last_sub_ns - tat_sub_ns) > 0 then -- exact near 0
          expiry_s = last_s
        else
          last = tat
        end
        tat = tat .. ' ' .. credit .. ' ' .. last
      end
      if not time then
        ttl_s = string.format('%d', expiry_s - now_s + 61)
      elseif expiry_s ~= was_s then
        ttl_s = '2' -- the usual ones are not printed either
        if expiry_s == now_s + 1 then
          ttl_s = '3'
        elseif expiry_s > now_s then
          ttl_s = string.format('%d', expiry_s - now_s + 2)
        end
      end
    end
    local done
    if ttl_s then
      done = redis_pcall('SET', key, tat, 'EX', ttl_s)
    else
      done = redis_pcall('SET', key, tat, 'KEEPTTL')
    end
    if done.err then
      return done
    end
  end
else
  if ahead >= 2^53 then
    -- Doubles below 2^63 are at most 1024 apart, so each of product and sum may be 512
    -- too low, and this sum again: 2048 more is 512 to 3584 more than exact, never early.
    -- 2^63 - 1024 is the largest double that a reply holds.
    ahead = math.min(ahead + 2048, 2^63 - 1024)
    retry = ahead - room
  end
  status = 0
  if cost > burst then
    status, retry = -1, -1
  end
end
local left, remaining = tau - ahead, 0
if left >= interval then
  remaining = (left - left % interval) / interval
end
return {status, remaining, retry, ahead}
