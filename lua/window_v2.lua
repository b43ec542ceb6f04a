-- window_v2: fixed and sliding window, chosen by a flag, with a clock that never
-- runs backwards and the earliest instant of a retry.
--
-- KEYS[1]   the key; holds 8 bytes, big-endian: u32 window index mod 2^32,
--           u16 previous count, u16 current count
-- ARGV      amount period_ns mode cost [now_ns]
--   amount     1 .. 65535   units a window; for more use gcra
--   period_ns  1 .. 2^52    the window, w
--   mode       fixed | sliding
--   cost       0 .. 2^52    units asked for; 0 only looks and writes nothing
--   now_ns     at most 19 digits, below 2^62; absent or empty: the server's TIME
-- reply     {status, remaining, retry_after_ns, reset_after_ns}
--   status     1 admitted, 0 refused, -1 cost is above amount
-- errors    BADARG, BADSTATE, or the server's own; none of them admits or writes
--
-- It computes, with i = floor(now / w) and e = now mod w,
--   the stored (I, P, C) rolled:  I = i: keep;  I + 1 = i: (C, 0);
--     I = i + 1, or I starts within a minute: keep, with i = I and e = 0;  else (0, 0)
--   weight = w - e when sliding, 0 when fixed
--   admit iff P * weight + (C + cost) * w <= amount * w;  then C = C + cost
-- exactly. So gateways whose clocks straddle a boundary cannot reset each other; an
-- index further off comes from another period, or from a clock that was mended.
-- Indexes are compared mod 2^32, as if less than 2^31 apart. retry_after_ns is exact:
-- a nanosecond earlier the call is refused (from 2^53 on, 104 days, with a clock behind, up to 3 ns more).
-- floor(p / a) for whole p, a below 2^53 is (p - p % a) / a: % is exact there. And
-- ceil(p / a) is that of the true quotient: its rounding moves it by less than 1 / a.
-- Where a line is written for speed, a comment says so.

-- Check. A local costs less to read than a global or an upvalue.
local KEYS, ARGV, tonumber, call = KEYS, ARGV, tonumber, redis.pcall
if #KEYS ~= 1 or #ARGV > 5 then
  return redis.error_reply('BADARG window_v2: takes 1 key, then amount period_ns mode cost [now_ns]')
end
local key, mode, now = KEYS[1], ARGV[3], ARGV[5]
local amount = tonumber(ARGV[1])
if not (amount and amount >= 1 and amount <= 65535 and amount % 1 == 0) then
  return redis.error_reply('BADARG window_v2: amount must be a whole number from 1 to 65535; for more use gcra')
end
local w = tonumber(ARGV[2])
if not (w and w >= 1 and w <= 2^52 and w % 1 == 0) then
  return redis.error_reply('BADARG window_v2: period_ns must be a whole number from 1 to 2^52')
end
local sliding = mode == 'sliding'
if not sliding and mode ~= 'fixed' then
  return redis.error_reply('BADARG window_v2: mode must be fixed or sliding')
end
local cost = 1
if ARGV[4] ~= '1' then -- the usual cost need not be parsed
  cost = tonumber(ARGV[4])
  if not (cost and cost >= 0 and cost <= 2^52 and cost % 1 == 0) then
    return redis.error_reply('BADARG window_v2: cost must be a whole number from 0 to 2^52')
  end
end

-- Clock. Digits need no tonumber, which parses twice: arithmetic reads them.
local now_s, now_ns, margin_ms = 0, now, 60000
if not now or now == '' then
  local time = call('TIME')
  if not time[1] then
    return redis.error_reply('BADARG window_v2: now_ns is absent and the server refuses TIME: ' .. time.err)
  end
  now_s, now_ns, margin_ms = time[1], time[2] * 1000, 1
elseif #now > 19 or string.find(now, '%D') then
  return redis.error_reply('BADARG window_v2: now_ns must be at most 19 decimal digits')
else
  if #now > 9 then
    now_s, now_ns = string.sub(now, 1, -10), string.sub(now, -9)
  end
  now_ns = now_ns + 0
end
local seconds = now_s * 1e9 -- exact below 2^62: 1e9 is 2^9 * 5^9, now_s * 5^9 < 2^53
if 2^62 - seconds <= now_ns then -- the difference is exact where it decides
  return redis.error_reply('BADARG window_v2: now_ns must be below 2^62')
end

-- Window: i (mod 2^32) and e. fmod is exact at any size, % is not above 2^53.
local fmod = math.fmod
local e = fmod(seconds, w)
-- a whole number below 2^32, to within 2^-20 after two roundings
local i = (fmod(seconds, w * 2^32) - e) / w + 0.5
e = e + now_ns -- below 2^52 + 2^30
local rest = e % w
i = (i - i % 1 + (e - rest) / w) % 2^32
e = rest
local left = w - e

-- Read and roll. gap is the time until the stored window starts.
local state = call('GET', key)
local previous, current, gap = 0, 0, 0
if state then
  local length = #state
  if length == 0 and state.err then -- an error is a table, of length 0
    return state
  end
  if length ~= 8 then
    return redis.error_reply('BADSTATE window_v2: the key holds something else than 8 bytes of counts')
  end
  local i3, i2, i1, i0, p1, p0, c1, c0 = string.byte(state, 1, 8)
  local stored = ((i3 * 256 + i2) * 256 + i1) * 256 + i0
  local ahead = (i - stored) % 2^32
  if ahead == 0 then
    previous, current = p1 * 256 + p0, c1 * 256 + c0
  elseif ahead == 1 then
    previous = c1 * 256 + c0
  elseif ahead >= 2^31 then
    local until_ns = (2^32 - ahead) * w - e -- exact for one window and up to a minute
    if until_ns <= 60e9 or ahead == 2^32 - 1 then
      previous, current, gap = p1 * 256 + p0, c1 * 256 + c0, until_ns
      i, left = stored, w * 1.0 -- a float in Lua 5.4 too: there an integer product wraps
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
local whole = gap + left + w -- until no count weighs when sliding
if gap > 0 and whole >= 2^53 then
  whole = whole + 2
end
local reset = 0
if current > 0 and sliding then
  reset = whole
elseif current > 0 or sliding and previous > 0 then
  reset = gap + left
end

-- Write: the ttl covers both counters in both modes; whole milliseconds, up.
if status == 1 and cost > 0 then
  local i_low, p_low, c_low = i % 2^16, previous % 256, current % 256
  local i_high, i_byte = (i - i_low) / 2^16, i_low % 256
  local done = call('SET', key, string.char(
    (i_high - i_high % 256) / 256, i_high % 256, (i_low - i_byte) / 256, i_byte,
    (previous - p_low) / 256, p_low, (current - c_low) / 256, c_low),
    'PX', string.format('%d', math.ceil(whole / 1e6) + margin_ms))
  if done.err then
    return done
  end
end
return {status, remaining, retry, reset}
