-- A window that finds no counts where the clock is behind the stored window: two callers
-- on the two sides of a boundary reset each other's counts at every call. State, replies
-- and expiry are window_v1's otherwise, but for waits, which lead to a boundary.

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
local now, by_server = ARGV[5], false
local now_s, now_ns
if now and now ~= '' then
  if #now > 19 or string.find(now, '%D') then
    return redis.error_reply('BADARG window_v1: now_ns must be at most 19 decimal digits')
  end
  now_s = tonumber(string.sub(now, 1, -10)) or 0
  now_ns = tonumber(string.sub(now, -9))
else
  local time = redis.pcall('TIME')
  now_s = tonumber(time[1])
  now_ns = tonumber(time[2]) * 1000
  by_server = true
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
local previous, current, stays = 0, 0, false
if state then
  if type(state) == 'table' then
    return state
  end
  if #state ~= 12 then
    return redis.error_reply('BADSTATE window_v1: the key holds something else than 12 bytes of counts')
  end
  local i3, i2, i1, i0, p1, p0, c1, c0, w3, w2, w1, w0 = string.byte(state, 1, 12)
  if ((w3 * 256 + w2) * 256 + w1) * 256 + w0 ~= w % 2^32 then
    return redis.error_reply('BADSTATE window_v1: the key holds counts of another period; name the period in the key')
  end
  local stored = ((i3 * 256 + i2) * 256 + i1) * 256 + i0
  if stored == i then
    previous, current, stays = p1 * 256 + p0, c1 * 256 + c0, true
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

-- Write.
if status == 1 and cost > 0 then
  local function bytes(n) -- of 16 bits
    return string.char(math.floor(n / 256), n % 256)
  end
  local counts = bytes(math.floor(i / 2^16)) .. bytes(i % 2^16) .. bytes(previous) .. bytes(current)
    .. bytes(math.floor(w % 2^32 / 2^16)) .. bytes(w % 2^16)
  if by_server and stays then
    redis.call('SET', KEYS[1], counts, 'KEEPTTL')
  else
    local ttl_s = math.ceil((left + w) / 1e9) + 60
    if by_server then
      ttl_s = math.ceil((now_ns + left + w) / 1e9) + 1
    end
    redis.call('SET', KEYS[1], counts, 'EX', string.format('%d', ttl_s))
  end
end
return {status, remaining, retry, reset}
