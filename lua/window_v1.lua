-- window_v1: fixed and sliding window, chosen by a flag.
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
--   the stored (I, P, C) rolled:  I = i: keep;  I + 1 = i: (C, 0);  else (0, 0)
--   weight = w - e when sliding, 0 when fixed
--   admit iff P * weight + (C + cost) * w <= amount * w;  then C = C + cost
-- exactly. retry_after_ns is a safe upper bound when sliding: the first window
-- boundary at which the call is sure to fit. A clock that runs backwards over a
-- boundary resets both counters.
-- whole: floor(p / a) and ceil(p / a) for whole p, a below 2^53 are those of the
-- true quotient: its rounding moves it by less than 1 / a.

-- Check.
if #KEYS ~= 1 or #ARGV > 5 then
  return redis.error_reply('BADARG window_v1: takes 1 key, then amount period_ns mode cost [now_ns]')
end
local amount = tonumber(ARGV[1])
if not (amount and amount >= 1 and amount <= 65535 and amount % 1 == 0) then
  return redis.error_reply('BADARG window_v1: amount must be a whole number from 1 to 65535; for more use gcra')
end
local w = tonumber(ARGV[2])
if not (w and w >= 1 and w <= 2^52 and w % 1 == 0) then
  return redis.error_reply('BADARG window_v1: period_ns must be a whole number from 1 to 2^52')
end
local sliding = ARGV[3] == 'sliding'
if not sliding and ARGV[3] ~= 'fixed' then
  return redis.error_reply('BADARG window_v1: mode must be fixed or sliding')
end
local cost = tonumber(ARGV[4])
if not (cost and cost >= 0 and cost <= 2^52 and cost % 1 == 0) then
  return redis.error_reply('BADARG window_v1: cost must be a whole number from 0 to 2^52')
end

-- Clock.
local now, margin_ms = ARGV[5], 60000
local now_s, now_ns
if now and now ~= '' then
  if #now > 19 or string.find(now, '%D') then
    return redis.error_reply('BADARG window_v1: now_ns must be at most 19 decimal digits')
  end
  now_s = tonumber(string.sub(now, 1, -10)) or 0
  now_ns = tonumber(string.sub(now, -9))
else
  local time = redis.pcall('TIME')
  if time.err then
    return redis.error_reply('BADARG window_v1: now_ns is absent and the server refuses TIME: ' .. time.err)
  end
  now_s = tonumber(time[1])
  now_ns = tonumber(time[2]) * 1000
  margin_ms = 1
end
local seconds = now_s * 1e9 -- exact below 2^62: 1e9 is 2^9 * 5^9, now_s * 5^9 < 2^53
if 2^62 - seconds <= now_ns then -- the difference is exact where it decides
  return redis.error_reply('BADARG window_v1: now_ns must be below 2^62')
end

-- Window: i (mod 2^32) and e. fmod is exact at any size, % is not above 2^53.
local e = math.fmod(seconds, w)
-- a whole number below 2^32, to within 2^-20 after two roundings
local i = math.floor((math.fmod(seconds, w * 2^32) - e) / w + 0.5)
local over = math.floor((e + now_ns) / w) -- whole: e + now_ns < 2^52 + 2^30
e = e + now_ns - over * w
i = (i + over) % 2^32
local left = w - e

-- Read and roll.
local state = redis.pcall('GET', KEYS[1])
local previous, current = 0, 0
if state then
  if type(state) == 'table' then
    return state
  end
  if #state ~= 8 then
    return redis.error_reply('BADSTATE window_v1: the key holds something else than 8 bytes of counts')
  end
  local i3, i2, i1, i0, p1, p0, c1, c0 = string.byte(state, 1, 8)
  local stored = ((i3 * 256 + i2) * 256 + i1) * 256 + i0
  if stored == i then
    previous, current = p1 * 256 + p0, c1 * 256 + c0
  elseif (stored + 1) % 2^32 == i then
    previous = c1 * 256 + c0
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
  carried = math.floor(previous * left / w + 0.5)
  local rest = w % previous
  local share = (w - rest) / previous
  if left > carried * share + math.floor(carried * rest / previous) then -- whole
    carried = carried + 1
  end
end

-- Decide.
local status, retry = 1, 0
if cost > amount then
  status, retry = -1, -1
elseif carried + current + cost > amount then
  status, retry = 0, left
  if sliding and current + cost > amount then
    retry = left + w -- current becomes previous at the next boundary, and fills it
  end
else
  current = current + cost
end
local remaining = amount - carried - current
if remaining < 0 then
  remaining = 0
end
local reset = 0
if current > 0 then
  reset = left
  if sliding then
    reset = left + w
  end
elseif sliding and previous > 0 then
  reset = left
end

-- Write: the ttl covers both counters in both modes; whole milliseconds, up.
if status == 1 and cost > 0 then
  local i_low = i % 2^16
  local i_high = (i - i_low) / 2^16
  local done = redis.pcall('SET', KEYS[1], string.char(
    math.floor(i_high / 256), i_high % 256, math.floor(i_low / 256), i_low % 256,
    math.floor(previous / 256), previous % 256, math.floor(current / 256), current % 256),
    'PX', string.format('%d', math.ceil((left + w) / 1e6) + margin_ms))
  if done.err then
    return done
  end
end
return {status, remaining, retry, reset}
