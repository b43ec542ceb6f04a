-- window_v1: fixed and sliding window, chosen by a flag, exact, with a clock that never
-- runs backwards.
-- SPDX-License-Identifier: MIT
-- https://github.com/tatami-rate/tatami, where lua/CHANGELOG.md has what is known to be
-- wrong with this text, and lua/README.md explains what it says briefly.
--
-- KEYS[1]   the key; holds 12 bytes, big-endian: u32 window index mod 2^32,
--           u16 previous count, u16 current count, u32 period_ns mod 2^32
-- ARGV      amount period_ns mode cost [now_ns]
--   amount     1 .. 65535   units a window; for more use gcra
--   period_ns  1 .. 2^52    the window, w; a key belongs to one period
--   mode       fixed | sliding
--   cost       0 .. 2^52    units asked for; 0 only looks and writes nothing
--   now_ns     at most 19 digits, below 2^62; absent or empty: the server's TIME
-- reply     {status, remaining, retry_after_ns, reset_after_ns}
--   status     1 admitted, 0 refused, -1 never: cost is above amount
--   remaining  units that could be admitted now, after this call; 0 .. amount
--   retry_after_ns  0 when admitted, -1 when never; else the same call is admitted that
--              much later if nothing else comes, and not a nanosecond earlier
--   reset_after_ns  until no count weighs any more; 0 when none does
-- errors    BADARG, BADSTATE, or the server's own; none of them admits or writes
-- expiry    set by an admitted call of cost above 0: the whole seconds, up, to the end of
--           the window after the counted one, and
--   1 s more   with the server's clock, from the second it is in; left as it is while the
--              index stays the same
--   60 s more  with a caller's clock, on every write
--
-- It computes, with i = floor(now / w) and e = now mod w,
--   the stored (I, P, C) rolled:  I = i: keep;  I + 1 = i: (C, 0);
--     I = i + 1, or I starts within a minute: keep, with i = I and e = 0;  else (0, 0)
--   weight = w - e when sliding, 0 when fixed
--   admit iff P * weight + (C + cost) * w <= amount * w;  then C = C + cost
-- exactly. So callers whose clocks straddle a boundary cannot reset each other; an index
-- further off comes from a clock that was mended.
-- Indexes are compared mod 2^32, as if at most 2^31 behind or less than that ahead: a
-- clock that moves by 2^32 windows while the key lives finds its counts again, and one
-- exactly 2^31 windows behind counts as behind. Periods are compared mod 2^32 too; those
-- of whole seconds never look alike.
-- From 2^53 ns on (104 days), with a clock behind, waits are up to 3 ns more.
-- floor(p / a) for whole p, a below 2^53 is (p - p % a) / a: % is exact there. And
-- ceil(p / a) is that of the true quotient: its rounding moves it by less than 1 / a.
-- Where a line is written for speed, a comment says so.

-- Check. A local costs less to read than a global or an upvalue.
local KEYS, ARGV, tonumber, redis_pcall = KEYS, ARGV, tonumber, redis.pcall
if #KEYS ~= 1 or #ARGV > 5 then
  return redis.error_reply('BADARG window_v1: takes 1 key, then amount period_ns mode cost [now_ns]')
end
local key, mode, now_ns = KEYS[1], ARGV[3], ARGV[5]
local amount = tonumber(ARGV[1])
if not (amount and amount >= 1 and amount <= 65535 and amount % 1 == 0) then
  return redis.error_reply('BADARG window_v1: amount must be a whole number from 1 to 65535; for more use gcra')
end
local w = tonumber(ARGV[2])
if not (w and w >= 1 and w <= 2^52 and w % 1 == 0) then
  return redis.error_reply('BADARG window_v1: period_ns must be a whole number from 1 to 2^52')
end
w = w + 0.0 -- a double in Lua 5.4 too, where products of its whole numbers wrap at 2^63
local sliding = mode == 'sliding'
if not sliding and mode ~= 'fixed' then
  return redis.error_reply('BADARG window_v1: mode must be fixed or sliding')
end
local cost = 1
if ARGV[4] ~= '1' then -- the usual cost need not be parsed
  cost = tonumber(ARGV[4])
  if not (cost and cost >= 0 and cost <= 2^52 and cost % 1 == 0) then
    return redis.error_reply('BADARG window_v1: cost must be a whole number from 0 to 2^52')
  end
end

-- Clock: whole seconds now_s, and the nanoseconds on top of them, now_sub_ns. Digits need
-- no tonumber, which parses twice: arithmetic reads them.
local now_s, now_sub_ns, time = 0, now_ns
if not now_ns or now_ns == '' then
  time = redis_pcall('TIME')
  now_s = time[1]
  if not now_s then
    return time -- the server's own error
  end
  now_sub_ns = time[2] * 1000
elseif #now_ns > 19 or string.find(now_ns, '%D') then
  return redis.error_reply('BADARG window_v1: now_ns must be at most 19 decimal digits')
else
  if #now_ns > 9 then
    now_s, now_sub_ns = string.sub(now_ns, 1, -10), string.sub(now_ns, -9)
  end
  now_sub_ns = now_sub_ns + 0
end
local seconds_ns = now_s * 1e9 -- exact below 2^62: 1e9 is 2^9 * 5^9, now_s * 5^9 < 2^53
if 2^62 - seconds_ns <= now_sub_ns then -- the difference is exact where it decides
  return redis.error_reply('BADARG window_v1: now_ns must be below 2^62')
end

-- Window: index (mod 2^32), and e, the time since it began. First those of the window in
-- which the second began, then on by the nanoseconds on top of it. fmod is exact at any
-- size, % is not from 2^53 on.
local fmod = math.fmod
local began_ns = fmod(seconds_ns, w)
local cycle_ns = seconds_ns
if cycle_ns >= w * 2^32 then -- for speed: below it fmod changes nothing
  cycle_ns = fmod(cycle_ns, w * 2^32)
end
-- a whole number below 2^32, to within 2^-20 after two roundings; a half more is floored
local whole = (cycle_ns - began_ns) / w + 0.5
local since_ns = began_ns + now_sub_ns -- below 2^52 + 2^30
local e = since_ns % w
local index = (whole - whole % 1 + (since_ns - e) / w) % 2^32
local left = w - e

-- Read and roll. gap is the time until the stored window starts.
local state = redis_pcall('GET', key)
local previous, current, gap, stays = 0, 0, 0
if state then
  if #state ~= 12 then
    if type(state) == 'table' then
      return state -- the server's own error
    end
    return redis.error_reply('BADSTATE window_v1: the key holds something else than 12 bytes of counts')
  end
  local i3, i2, i1, i0, p1, p0, c1, c0, w3, w2, w1, w0 = string.byte(state, 1, 12)
  if ((w3 * 256 + w2) * 256 + w1) * 256 + w0 ~= w % 2^32 then
    return redis.error_reply('BADSTATE window_v1: the key holds counts of another period; '
      .. 'name the period in the key')
  end
  local stored = ((i3 * 256 + i2) * 256 + i1) * 256 + i0
  local ahead = (index - stored) % 2^32
  if ahead == 0 then
    previous, current, stays = p1 * 256 + p0, c1 * 256 + c0, true
  elseif ahead == 1 then
    previous = c1 * 256 + c0
  elseif ahead >= 2^31 then
    local until_ns = (2^32 - ahead) * w - e -- exact for one window and up to a minute
    if until_ns <= 60e9 or ahead == 2^32 - 1 then
      previous, current, gap, stays = p1 * 256 + p0, c1 * 256 + c0, until_ns, true
      index, left = stored, w
    end
  end
end

-- carried = ceil(previous * left / w): units of the last window that still count.
-- The counts are whole, so the test of the header is carried + C + cost <= amount.
local carried = 0
if sliding and previous > 0 then
  -- The nearest whole number by doubles (to within 2^-35), then one exact test of
  -- previous * left > carried * w, as left > floor(carried * w / previous): with
  -- w = share * previous + rest that is carried * share, at most w, and the rest's
  -- part, a product below 2^32.
  carried = previous * left / w + 0.5
  carried = carried - carried % 1
  local spare = w % previous
  local part = carried * spare
  if left > carried * ((w - spare) / previous) + (part - part % previous) / previous then
    carried = carried + 1
  end
end

-- Decide.
local status, retry = 1, 0
local free = amount - current - cost
if free >= carried then
  current = current + cost
elseif cost > amount then
  status, retry = -1, -1
else
  status, retry = 0, gap + left
  if sliding then
    -- The call fits when the count that fades has faded to what is free: the previous
    -- one in this window, or the current one in the next. That count * time left <=
    -- free * w from the time left floor(free * w / count) on.
    local count, from = previous, 0
    if free < 0 then
      count, free, from = current, amount - cost, w
    end
    local spare = w % count
    local part = free * spare
    retry = retry + (from - (free * ((w - spare) / count) + (part - part % count) / count))
  end
  if gap > 0 and retry >= 2^53 then -- a sum that may have rounded down by 1
    retry = retry + 2
  end
end
local remaining = amount - carried - current
if remaining < 0 then
  remaining = 0
end
local end_ns = gap + left + w -- until no count weighs when sliding
if gap > 0 and end_ns >= 2^53 then
  end_ns = end_ns + 2
end
local reset = 0
if current > 0 and sliding then
  reset = end_ns
elseif current > 0 or sliding and previous > 0 then
  reset = gap + left
end

-- Write. The expiry covers both counters in both modes. By the server's clock the sum may
-- round from 2^53 ns on and come out a second short, which the margin has.
if status == 1 and cost > 0 then
  local i_low, w_low, p0, c0 = index % 2^16, w % 2^16, previous % 256, current % 256
  local i_high, w_high = (index - i_low) / 2^16, (w % 2^32 - w_low) / 2^16
  local i2, i0, w2, w0 = i_high % 256, i_low % 256, w_high % 256, w_low % 256
  local counts = string.char(
    (i_high - i2) / 256, i2, (i_low - i0) / 256, i0, (previous - p0) / 256, p0,
    (current - c0) / 256, c0, (w_high - w2) / 256, w2, (w_low - w0) / 256, w0)
  local done
  if stays and time then
    done = redis_pcall('SET', key, counts, 'KEEPTTL')
  else
    local margin_s = 60
    if time then -- the second that the end lies in, whatever the time within this one
      end_ns, margin_s = now_sub_ns + end_ns, 1
    end
    done = redis_pcall('SET', key, counts, 'EX',
      string.format('%d', (end_ns + -end_ns % 1e9) / 1e9 + margin_s))
  end
  if done.err then
    return done
  end
end
return {status, remaining, retry, reset}
