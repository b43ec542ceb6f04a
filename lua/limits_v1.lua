-- limits_v1: several limits in one call, all or nothing; and costs that are settled later.
-- SPDX-License-Identifier: MIT
-- https://github.com/tatami-rate/tatami, where lua/CHANGELOG.md has what is known to be
-- wrong with this text, and lua/README.md explains what it says briefly.
--
-- KEYS      1 to 32 keys, all different, that hold what gcra_v2 and window_v1 keep:
--   gcra       the theoretical arrival time (TAT), decimal ns since 1970; or, once units
--              were given back, `TAT credit last`: credit is their sum in ns, last the
--              largest TAT that spending left
--   a window   12 bytes, big-endian: u32 window index mod 2^32, u16 previous count,
--              u16 current count, u32 period_ns mod 2^32
-- ARGV      now_ns { kind amount period_ns burst cost receipt } x n, for each of n keys
--   now_ns     at most 19 digits, below 2^62 for a window; empty: the server's TIME
--   kind       gcra | fixed | sliding
--   amount     1 .. period_ns for gcra, 1 .. 65535 for a window; units a period
--   period_ns  1 .. 2^52
--   burst      1 .. 2^52 / interval for gcra, empty for a window
--   cost       of an ask 0 .. 2^52 units, 0 only looks. Of a settlement what was really
--              used less what was charged, -2^52 .. 2^52; 0 changes nothing
--   receipt    empty: an ask. Else that of an earlier ask on this key, with its kind,
--              amount, period_ns and burst: a settlement of it, which is always applied
-- reply     {status, retry_after_ns,
--            {status, remaining, retry_after_ns, reset_after_ns, receipt} x n}
--   status     1 all asks are admitted and charged; 0 one is refused and none is charged;
--              -1 so for ever. Each key's: what its ask would get alone; 1 of a settlement
--   remaining  as gcra_v2 and window_v1 answer it, after what was charged or settled
--   retry_after_ns  each key's, 0 of a settlement. The whole call's is the longest: the
--              same asks are admitted that much later if nothing else comes, and not a
--              nanosecond earlier; -1 with status -1. A window that counts anew, by a clock
--              far behind, may find its counts again by then
--   reset_after_ns  as remaining
--   receipt    of an ask that was charged; of gcra TAT and credit after it, `S` or `S R`,
--              of a window its index. Of a settlement the one it gave; else empty
-- errors    BADARG, BADSTATE, of the first key that has one, or the server's own; none of
--           them admits or writes, but that a SET which fails leaves those before it
-- expiry    set by each write, to whole seconds: of gcra from the second of the clock to
--           that in which the TAT, or last, lies; of a window to the end of the window after
--           the counted one, up; and
--   2 s more   with the server's clock, 1 s of a window, from the second it is in; left as
--              it is while that second, or the index, stays the same
--   61 s more  with a caller's clock, 60 s of a window, on every write
--
-- It decides by the definitions in the headers of gcra_v2 and window_v1. A settlement of
-- gcra, with interval = ceil(period_ns / amount), computes
--   more used  tat = max(tat, now) + cost * interval, at most now + 2^53 - 1 but no less
--              than tat was
--   less used  worth = (S - now) - (credit - R); 0 if credit < R or worth > tat - now, as
--              after the state was lost, and if a difference is 2^53 or more or a credit
--              has more than 24 digits;
--              c = max(0, min(-cost * interval, worth)); tat = tat - c; credit = credit + c
-- and then tat is never below that of exact GCRA fed with what was really used, each unit
-- at the instant of its ask. A settlement of a window changes a count, from 0 to 65535:
--   more used  the current one
--   less used  that of the receipt's window while it is the current or the previous one,
--              unless it is 65535, which may have been cut
-- exactly, as the other scripts do: an instant is two whole doubles, seconds (_s) and the
-- nanoseconds on top of them (_sub_ns, below 10^9); a difference below 2^53 ns is one.
-- From 2^53 ns on (104 days), waits of gcra are up to 4096 ns more, and end at 2^63 - 1024;
-- so is what a give-back leaves of one, and remaining is less by that. Those of a window,
-- with a clock behind, are up to 3 ns more.
-- Where a line is written for speed, a comment says so.

-- Check. A local costs less to read than a global or an upvalue.
local KEYS, ARGV, tonumber, redis_pcall = KEYS, ARGV, tonumber, redis.pcall
local n = #KEYS
if n < 1 or n > 32 or #ARGV ~= 6 * n + 1 then
  return redis.error_reply('BADARG limits_v1: takes 1 to 32 keys, then now_ns, '
    .. 'then kind amount period_ns burst cost receipt for each')
end

-- Clock. Digits need no tonumber, which parses twice: arithmetic reads them.
local now_ns = ARGV[1]
local now_s, now_sub_ns, time = 0, now_ns
if now_ns == '' then
  time = redis_pcall('TIME')
  now_s = time[1]
  if not now_s then
    return time -- the server's own error
  end
  now_s, now_sub_ns = now_s + 0, time[2] * 1000
elseif #now_ns > 19 or string.find(now_ns, '%D') then
  return redis.error_reply('BADARG limits_v1: now_ns must be at most 19 decimal digits')
else
  if #now_ns > 9 then
    now_s, now_sub_ns = string.sub(now_ns, 1, -10) + 0, string.sub(now_ns, -9)
  end
  now_sub_ns = now_sub_ns + 0
end

-- Every key is read before one is written. What is to be written stands meanwhile where
-- the arguments were: for speed, a table less.
local reply, named = {1, 0}
if n > 1 then
  named = {}
end
for at = 1, n do
  local key, kind, receipt = KEYS[at], ARGV[6 * at - 4], ARGV[6 * at + 1]
  local asks = receipt == ''
  if named then
    if named[key] then
      return redis.error_reply('BADARG limits_v1: key ' .. at .. ': it is named before')
    end
    named[key] = true
  end
  local period_ns = tonumber(ARGV[6 * at - 2])
  if not (period_ns and period_ns >= 1 and period_ns <= 2^52 and period_ns % 1 == 0) then
    return redis.error_reply('BADARG limits_v1: key ' .. at
      .. ': period_ns must be a whole number from 1 to 2^52')
  end
  local amount, cost = tonumber(ARGV[6 * at - 3]), 1
  if ARGV[6 * at] ~= '1' then -- the usual cost need not be parsed
    cost = tonumber(ARGV[6 * at])
  end
  if not (cost and cost <= 2^52 and cost % 1 == 0
    and (cost >= 0 or cost >= -2^52 and not asks)) then
    return redis.error_reply('BADARG limits_v1: key ' .. at
      .. ': cost must be a whole number from 0 to 2^52, or from -2^52 beside a receipt')
  end
  local status, retry, remaining, reset, uncharged, text, ttl_s = 1, 0, 0

  if kind == 'gcra' then
    if not (amount and amount >= 1 and amount <= period_ns and amount % 1 == 0) then
      return redis.error_reply('BADARG limits_v1: key ' .. at
        .. ': amount must be a whole number from 1 to period_ns')
    end
    -- ceil(period_ns / amount): -p % a is what p lacks to a multiple of a, so a divides the sum.
    local interval = (period_ns + -period_ns % amount) / amount
    local burst = tonumber(ARGV[6 * at - 1]) or 0
    local tau = interval * burst -- exact up to 2^52, and rounds to no less from there on
    if not (burst >= 1 and tau <= 2^52 and burst % 1 == 0) then
      return redis.error_reply('BADARG limits_v1: key ' .. at .. ': burst must be a whole number '
        .. 'from 1 to 2^52 / interval, where interval = ceil(period_ns / amount)')
    end
    local paid, credited -- the receipt's S and R
    if not asks then
      paid = receipt
      if #paid > 19 or paid ~= '0' and not string.find(paid, '^[1-9]%d*$') then
        paid, credited = string.match(receipt, '^(%d+) ([1-9]%d*)$')
        if not paid or #paid > 19 or paid ~= '0' and string.find(paid, '^0') then
          return redis.error_reply('BADARG limits_v1: key ' .. at
            .. ': receipt must be empty, or that of an earlier ask')
        end
      end
    end
    -- Up to 9223372036 s the sum is below 2^53, so exact; after it, it is below 0 anyhow.
    -- tau is at most 2^52, so there is nothing to compute until 9218868437 s.
    if now_s >= 9218868437 and (9223372036 - now_s) * 1e9 + (854775807 - now_sub_ns) < tau then
      return redis.error_reply('BADARG limits_v1: key ' .. at
        .. ': now_ns + burst * interval is above 2^63 - 1')
    end

    -- Read: ahead = max(tat - now, 0). The stored TAT is stored_s and sub_ns.
    local state = redis_pcall('GET', key)
    local ahead, second, tat, stored_s, sub_ns, credit, last, last_s, last_sub_ns = 0
    if state then
      if #state == 19 then -- the usual state, of a clock from 2001 to 2286, by one match
        second, sub_ns = string.match(state, '^([1-9]%d%d%d%d%d%d%d%d%d)(%d+)$')
      end
      if second then
        stored_s = second + 0
      elseif type(state) == 'table' then
        return state -- the server's own error
      else
        tat, credit, last = string.match(state, '^(%d+) ([1-9]%d*) ([1-9]%d*)$')
        tat = tat or state
        -- A shorter number is a TAT of a caller's clock near 1970, or of a server whose
        -- clock is not set. Any other is a counter of somebody's, and no TAT.
        local shortest = 1
        if time and now_s >= 1e9 then
          shortest = 19
        end
        if #tat < shortest or #tat > 19 or tat ~= '0' and not string.find(tat, '^[1-9]%d*$')
          or last and (#last < shortest or #last > 19) then
          return redis.error_reply('BADSTATE limits_v1: key ' .. at
            .. ': it holds something else than a decimal TAT')
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
      elseif ahead >= 2^53 then
        -- Doubles below 2^63 are at most 1024 apart, so each of product and sum may be 512
        -- too low, and this sum again: 2048 more is 512 to 3584 more than exact, never early.
        -- 2^63 - 1024 is the largest double that a reply holds.
        ahead = math.min(ahead + 2048, 2^63 - 1024)
      end
    end

    -- Decide. What is written is the TAT at from_s and ns. cost * interval is exact up to
    -- tau; above 2^53 it may round, but then the ask never fits, and a settlement is cut.
    local from_s, ns
    reset = ahead
    if asks then
      retry = ahead - (tau - cost * interval)
      if retry > 0 then
        status = 0
        if cost > burst then
          status, retry = -1, -1
        end
      else
        retry = 0
        if cost > 0 and reply[1] == 1 then
          ahead = ahead + cost * interval -- at most tau
          from_s, ns = now_s, now_sub_ns + ahead -- below 2^52 + 2^30
        end
      end
    elseif cost > 0 then
      local debt = math.min(ahead + cost * interval, 2^53 - 1)
      if debt > ahead then
        ahead = debt
        from_s, ns = now_s, now_sub_ns + debt
        if debt > 2^52 then -- whole seconds aside, or the sum could round
          from_s, ns = now_s + 4e6, now_sub_ns + (debt - 4e15)
        end
      end
    elseif cost < 0 and ahead > 0 then
      -- All is exact: a difference is a double below 2^53, or too far for a receipt.
      local worth = (('0' .. string.sub(paid, 1, -10)) - now_s) * 1e9
        + (string.sub(paid, -9) - now_sub_ns)
      local sum_s, sum_sub_ns, since = 0, 0, 0
      if credit or credited then
        local sum, before = credit or '0', credited or '0'
        sum_s, sum_sub_ns = ('0' .. string.sub(sum, 1, -10)) + 0, string.sub(sum, -9)
        since = (sum_s - ('0' .. string.sub(before, 1, -10))) * 1e9
          + (sum_sub_ns - string.sub(before, -9))
        if #sum > 24 or #before > 24 then
          since = -1
        end
      end
      if worth < 2^53 and since >= 0 and since < 2^53 then
        worth = worth - since
        local c = -cost * interval
        if c > worth then
          c = worth
        end
        if c > 0 and worth <= ahead then
          if not credit then
            last, last_s, last_sub_ns = tat or second .. sub_ns, stored_s, sub_ns
          end
          ahead = ahead - c
          from_s, ns = stored_s, sub_ns - c
          local c_sub_ns = c % 1e9
          sum_s, sum_sub_ns = sum_s + (c - c_sub_ns) / 1e9, sum_sub_ns + c_sub_ns
          if sum_sub_ns >= 1e9 then
            sum_s, sum_sub_ns = sum_s + 1, sum_sub_ns - 1e9
          end
          if sum_s == 0 then
            credit = string.format('%d', sum_sub_ns)
          elseif sum_s < 2^31 then
            credit = string.format('%d%09d', sum_s, sum_sub_ns)
          else
            credit = string.format('%.0f%09d', sum_s, sum_sub_ns)
          end
        end
      end
    end
    local left = tau - ahead
    if left >= interval then
      remaining = (left - left % interval) / interval
    end

    if from_s then
      local tat_sub_ns = ns % 1e9
      local tat_s = from_s + (ns - tat_sub_ns) / 1e9
      -- Known digits are not printed again, which would cost most. And %d takes C's long,
      -- which has 32 bits on some servers: too few from 2038 on.
      if second and tat_s == stored_s then
        text = second .. string.format('%09d', tat_sub_ns)
      elseif tat_s == 0 then
        text = string.format('%d', tat_sub_ns)
      elseif time and tat_s == now_s then
        text = time[1] .. string.format('%09d', tat_sub_ns)
      elseif tat_s >= 2^31 then
        text = string.format('%.0f%09d', tat_s, tat_sub_ns)
      else
        text = string.format('%d%09d', tat_s, tat_sub_ns)
      end
      if asks then
        receipt = text
      end
      local expiry_s, was_s = tat_s, stored_s
      if credit then
        was_s = last_s
        if (last_s - tat_s) * 1e9 + (last_sub_ns - tat_sub_ns) > 0 then -- exact near 0
          expiry_s = last_s
        else
          last = text
        end
        if asks then
          receipt = text .. ' ' .. credit
        end
        text = text .. ' ' .. credit .. ' ' .. last
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
    reset, uncharged = ahead, reset

  elseif kind == 'fixed' or kind == 'sliding' then
    if not (amount and amount >= 1 and amount <= 65535 and amount % 1 == 0) then
      return redis.error_reply('BADARG limits_v1: key ' .. at
        .. ': amount must be a whole number from 1 to 65535; for more use gcra')
    end
    if ARGV[6 * at - 1] ~= '' then
      return redis.error_reply('BADARG limits_v1: key ' .. at
        .. ': burst must be empty for a window')
    end
    local paid_index -- the receipt
    if not asks then
      if receipt == '0' or string.find(receipt, '^[1-9]%d*$') then
        paid_index = receipt + 0
      end
      if not paid_index or paid_index >= 2^32 then
        return redis.error_reply('BADARG limits_v1: key ' .. at
          .. ': receipt must be empty, or that of an earlier ask')
      end
    end
    local seconds_ns = now_s * 1e9 -- exact below 2^62: 1e9 is 2^9 * 5^9, now_s * 5^9 < 2^53
    if 2^62 - seconds_ns <= now_sub_ns then -- the difference is exact where it decides
      return redis.error_reply('BADARG limits_v1: key ' .. at
        .. ': now_ns must be below 2^62')
    end

    -- Window: index (mod 2^32), and e, the time since it began. First those of the window in
    -- which the second began, then on by the nanoseconds on top of it. fmod is exact at any
    -- size, % is not from 2^53 on.
    local w = period_ns + 0.0 -- a double in Lua 5.4 too, where products of its whole numbers wrap
    local began_ns = math.fmod(seconds_ns, w)
    local cycle_ns = seconds_ns
    if cycle_ns >= w * 2^32 then -- for speed: below it fmod changes nothing
      cycle_ns = math.fmod(cycle_ns, w * 2^32)
    end
    -- a whole number below 2^32, to within 2^-20 after two roundings; a half more is floored
    local whole = (cycle_ns - began_ns) / w + 0.5
    local since_ns = began_ns + now_sub_ns -- below 2^52 + 2^30
    local e = since_ns % w
    local index = (whole - whole % 1 + (since_ns - e) / w) % 2^32
    local left = w - e

    -- Read and roll. gap is the time until the stored window starts.
    local state = redis_pcall('GET', key)
    local previous, current, gap, stays, changed = 0, 0, 0
    if state then
      if #state ~= 12 then
        if type(state) == 'table' then
          return state -- the server's own error
        end
        return redis.error_reply('BADSTATE limits_v1: key ' .. at
          .. ': it holds something else than 12 bytes of counts')
      end
      local i3, i2, i1, i0, p1, p0, c1, c0, w3, w2, w1, w0 = string.byte(state, 1, 12)
      if ((w3 * 256 + w2) * 256 + w1) * 256 + w0 ~= w % 2^32 then
        return redis.error_reply('BADSTATE limits_v1: key ' .. at
          .. ': it holds counts of another period; name the period in the key')
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

    -- Settle.
    if not asks then
      local behind = (index - paid_index) % 2^32
      local was = previous + current
      if cost > 0 then
        current = math.min(current + cost, 65535)
      elseif behind == 0 and current < 65535 then
        current = math.max(current + cost, 0)
      elseif behind == 1 and previous < 65535 then
        previous = math.max(previous + cost, 0)
      end
      changed = previous + current ~= was
    end

    -- carried = ceil(previous * left / w): units of the last window that still count.
    -- The counts are whole, so the test of the definition is carried + C + cost <= amount.
    local sliding, carried = kind == 'sliding', 0
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
    local end_ns = gap + left + w -- until no count weighs when sliding
    if gap > 0 and end_ns >= 2^53 then
      end_ns = end_ns + 2
    end
    reset = 0
    if sliding and current > 0 then
      reset = end_ns
    elseif current > 0 or sliding and previous > 0 then
      reset = gap + left
    end
    uncharged = reset

    -- Decide.
    if asks then
      local free = amount - current - cost
      if free >= carried then
        if cost > 0 and reply[1] == 1 then
          current, changed, reset = current + cost, true, gap + left
          if sliding then
            reset = end_ns
          end
        end
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
    end
    remaining = math.max(amount - carried - current, 0)

    -- The expiry covers both counters in both modes. By the server's clock the sum may
    -- round from 2^53 ns on and come out a second short, which the margin has.
    if changed then
      local i_low, w_low, p0, c0 = index % 2^16, w % 2^16, previous % 256, current % 256
      local i_high, w_high = (index - i_low) / 2^16, (w % 2^32 - w_low) / 2^16
      local i2, i0, w2, w0 = i_high % 256, i_low % 256, w_high % 256, w_low % 256
      text = string.char(
        (i_high - i2) / 256, i2, (i_low - i0) / 256, i0, (previous - p0) / 256, p0,
        (current - c0) / 256, c0, (w_high - w2) / 256, w2, (w_low - w0) / 256, w0)
      if not (stays and time) then
        local margin_s = 60
        if time then -- the second that the end lies in, whatever the time within this one
          end_ns, margin_s = now_sub_ns + end_ns, 1
        end
        ttl_s = string.format('%d', (end_ns + -end_ns % 1e9) / 1e9 + margin_s)
      end
      if asks then
        if index < 2^31 then
          receipt = string.format('%d', index)
        else
          receipt = string.format('%.0f', index)
        end
      end
    end
  else
    return redis.error_reply('BADARG limits_v1: key ' .. at
      .. ': kind must be gcra, fixed or sliding')
  end

  reply[at + 2] = {status, remaining, retry, reset, receipt}
  ARGV[6 * at - 4], ARGV[6 * at - 3], ARGV[6 * at - 2] = text, ttl_s, uncharged
  if status < 1 then
    reply[1] = math.min(reply[1], status)
    reply[2] = math.max(reply[2], retry)
    if reply[1] < 0 then
      reply[2] = -1
    end
  end
end

-- Write: settlements, and the asks when all are admitted.
for at = 1, n do
  local text, ttl_s = ARGV[6 * at - 4], ARGV[6 * at - 3]
  if text and reply[1] < 1 and ARGV[6 * at + 1] == '' then
    local answer = reply[at + 2]
    answer[2], answer[4], answer[5] = answer[2] + tonumber(ARGV[6 * at]), ARGV[6 * at - 2], ''
  elseif text then
    local done
    if ttl_s then
      done = redis_pcall('SET', KEYS[at], text, 'EX', ttl_s)
    else
      done = redis_pcall('SET', KEYS[at], text, 'KEEPTTL')
    end
    if done.err then
      return done
    end
  end
end
return reply
