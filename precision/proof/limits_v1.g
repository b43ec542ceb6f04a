# limits_v1.lua in binary64, rounded to nearest: each operation, over its whole range.
#
# A line of the script stands after "#=". Its operations follow in the order in which it
# computes them, each as what is proved of it here, or after "#by" with the lemma that covers
# it: precision/lemmas_test.go has a test of each, of what Gappa cannot state. "#above" says
# that the same operation stands further up, "#as" one that this name covers too. "#in" names
# a script in whose proof the operation stands, over the same range: "*" is all of the line's
# that are left, and a text after " as " is how it stands there, its second operand by a name.
#
# To the left of -> stands what the script's checks and branches give of the operands;
# to the right, what is proved. "x - X in [0,0]" says that the operation x is exact,
# @FIX(x,k) that x is a multiple of 2^k. A name with _ is a value that a line before
# proves or a lemma gives; capitals are real numbers.
# TestSettleIsTheScript and TestAskIsTheScript try the whole script.

@double = float<ieee_64,ne>;

# places in ARGV and in the reply
#= if n < 1 or n > 32 or #ARGV ~= 6 * n + 1 then
six_n double= 6 * n;
args double= six_n_ + 1;
#= now_s, now_sub_ns = now_s + 0, time[2] * 1000
#in gcra_v2: *
#= now_s, now_sub_ns = string.sub(now_ns, 1, -10) + 0, string.sub(now_ns, -9)
#in gcra_v2: *
#= now_sub_ns = now_sub_ns + 0
#in gcra_v2: *
#= local key, kind, receipt = KEYS[at], ARGV[6 * at - 4], ARGV[6 * at + 1]
six_at double= 6 * at;
kind_at double= six_at_ - 4;
#above 6 * at
receipt_at double= six_at_ + 1;
#= local period_ns = tonumber(ARGV[6 * at - 2])
#above 6 * at
period_at double= six_at_ - 2;
#= if not (period_ns and period_ns >= 1 and period_ns <= 2^52 and period_ns % 1 == 0) then
#in gcra_v2: *
#= local amount, cost = tonumber(ARGV[6 * at - 3]), 1
#above 6 * at
amount_at double= six_at_ - 3;
#= if ARGV[6 * at] ~= '1' then
#above 6 * at
#= cost = tonumber(ARGV[6 * at])
#above 6 * at
#= if not (cost and cost <= 2^52 and cost % 1 == 0
#in gcra_v2: *
#= if not (amount and amount >= 1 and amount <= period_ns and amount % 1 == 0) then
#in gcra_v2: *
#= local interval = (period_ns + -period_ns % amount) / amount
#in gcra_v2: *
#= local burst = tonumber(ARGV[6 * at - 1]) or 0
#above 6 * at
burst_at double= six_at_ - 1;
#= local tau = interval * burst
#in gcra_v2: *
#= if not (burst >= 1 and tau <= 2^52 and burst % 1 == 0) then
#in gcra_v2: *
#= if now_s >= 9218868437 and (9223372036 - now_s) * 1e9 + (854775807 - now_sub_ns) < tau then
#in gcra_v2: *
#= stored_s = second + 0
#in gcra_v2: *
#= stored_s, sub_ns = ('0' .. string.sub(tat, 1, -10)) + 0, string.sub(tat, -9)
#in gcra_v2: *
#= last_s, last_sub_ns = ('0' .. string.sub(last, 1, -10)) + 0, string.sub(last, -9)
#in gcra_v2: *
#= ahead = (stored_s - now_s) * 1e9 + (sub_ns - now_sub_ns)
#in gcra_v2: *
#= ahead = math.min(ahead + 2048, 2^63 - 1024)
#in gcra_v2: *
#= retry = ahead - (tau - cost * interval)
#in gcra_v2: cost * interval
#in gcra_v2: tau - cost * interval
#in gcra_v2: ahead - (tau - cost * interval) as ahead - room
#= ahead = ahead + cost * interval
#in gcra_v2: *
#= from_s, ns = now_s, now_sub_ns + ahead
#in gcra_v2: *

# more used: Charge is cost * interval, where the sum is below 2^53. A larger one, rounded or
# not, is cut: Sides. From 2^52 on 4e15 of debt is taken over in whole seconds.
#= local debt = math.min(ahead + cost * interval, 2^53 - 1)
Charge = cost * interval_;
charge = double(Charge);
debt double= ahead_ + charge_;
#= from_s, ns = now_s, now_sub_ns + debt
ns double= now_sub_ns + debt_near_;
#= from_s, ns = now_s + 4e6, now_sub_ns + (debt - 4e15)
over_s double= now_s + 4e6;
debt_rest double= debt_far_ - 4e15;
ns_far double= now_sub_ns + debt_rest_;

# less used: S - now, where it is below 2^53 and above -2^53; a larger one lies on its side:
# Sides. Paid_s and Paid_n are the brackets.
#= local worth = (('0' .. string.sub(paid, 1, -10)) - now_s) * 1e9
paid_s double= paid_text_s - now_s;
paid_seconds = double(paid_near_s * 1e9);
paid double= paid_seconds_ + Paid_n;
#= + (string.sub(paid, -9) - now_sub_ns)
paid_n double= paid_text_ns - now_sub_ns;

# credit - R, of at most 24 digits each: 15 are seconds
#= sum_s, sum_sub_ns = ('0' .. string.sub(sum, 1, -10)) + 0, string.sub(sum, -9)
#by Digits: ('0' .. string.sub(sum, 1, -10)) + 0
#= since = (sum_s - ('0' .. string.sub(before, 1, -10))) * 1e9
since_s double= sum_s - before_text_s;
since_seconds = double(since_near_s * 1e9);
since double= since_seconds_ + Since_n;
#= + (sum_sub_ns - string.sub(before, -9))
since_n double= sum_sub_ns - before_text_ns;

# what is given back: Given is units times interval. Above 2^53 it may round, but then worth
# is less. Before that, worth - since below -2^53 may round: it is below 0.
#= worth = worth - since
worth double= worth_ - since_;
#= local c = -cost * interval
Given = given_units * interval_;
given = double(Given);
#= ahead = ahead - c
less double= ahead_ - c;
#= from_s, ns = stored_s, sub_ns - c
ns_back double= sub_ns - c;
#= local c_sub_ns = c % 1e9
#by Remainder: c % 1e9
#= sum_s, sum_sub_ns = sum_s + (c - c_sub_ns) / 1e9, sum_sub_ns + c_sub_ns
c_whole double= c - c_sub_ns;
c_whole_s = double(c_s);
sum_s_more double= sum_s + c_s;
sum_sub_ns_more double= sum_sub_ns + c_sub_ns;
#= sum_s, sum_sub_ns = sum_s + 1, sum_sub_ns - 1e9
sum_s_next double= sum_s_ + 1;
sum_sub_ns_rest double= sum_sub_ns_ - 1e9;
#= local left = tau - ahead
#in gcra_v2: *
#= remaining = (left - left % interval) / interval
#in gcra_v2: *

# the write: ns from -2^53 to 2^53, ns_ - tat_sub_ns is carry_s times 1e9, so a multiple of 2^9
#= local tat_sub_ns = ns % 1e9
#by Remainder: ns % 1e9
#= local tat_s = from_s + (ns - tat_sub_ns) / 1e9
whole_ns double= ns_ - tat_sub_ns;
whole_s = double(carry_s);
tat_s double= from_s + carry_s;
#= if (last_s - tat_s) * 1e9 + (last_sub_ns - tat_sub_ns) > 0 then
apart_s double= last_s - tat_s_;
#by Sides: (last_s - tat_s) * 1e9
#in gcra_v2: last_sub_ns - tat_sub_ns
#by Sides: (last_s - tat_s) * 1e9 + (last_sub_ns - tat_sub_ns)
#= ttl_s = string.format('%d', expiry_s - now_s + 61)
ahead_s double= expiry_s - now_s;
ttl_s double= ahead_s_ + margin_s;
#= if expiry_s == now_s + 1 then
#in gcra_v2: *
#= ttl_s = string.format('%d', expiry_s - now_s + 2)
#above expiry_s - now_s
#as ttl_s: expiry_s - now_s + 2
#= if not (amount and amount >= 1 and amount <= 65535 and amount % 1 == 0) then
#in window_v1: *
#= if ARGV[6 * at - 1] ~= '' then
#above 6 * at
#above 6 * at - 1
#= paid_index = receipt + 0
#by Digits: receipt + 0
#= local seconds_ns = now_s * 1e9
#in window_v1: *
#= if 2^62 - seconds_ns <= now_sub_ns then
#in window_v1: *
#= local w = period_ns + 0.0
#by Digits: period_ns + 0.0
#= local began_ns = math.fmod(seconds_ns, w)
#in window_v1: *
#= if cycle_ns >= w * 2^32 then
#in window_v1: *
#= cycle_ns = math.fmod(cycle_ns, w * 2^32)
#in window_v1: *
#= local whole = (cycle_ns - began_ns) / w + 0.5
#in window_v1: *
#= local since_ns = began_ns + now_sub_ns
#in window_v1: *
#= local e = since_ns % w
#in window_v1: *
#= local index = (whole - whole % 1 + (since_ns - e) / w) % 2^32
#in window_v1: *
#= local left = w - e
#in window_v1: *
#= if ((w3 * 256 + w2) * 256 + w1) * 256 + w0 ~= w % 2^32 then
#in window_v1: *
#= local stored = ((i3 * 256 + i2) * 256 + i1) * 256 + i0
#in window_v1: *
#= local ahead = (index - stored) % 2^32
#in window_v1: *
#= previous, current, stays = p1 * 256 + p0, c1 * 256 + c0, true
#in window_v1: *
#= previous = c1 * 256 + c0
#in window_v1: *
#= local until_ns = (2^32 - ahead) * w - e
#in window_v1: *
#= previous, current, gap, stays = p1 * 256 + p0, c1 * 256 + c0, until_ns, true
#in window_v1: *

# a window's settlement
#= local behind = (index - paid_index) % 2^32
behind double= index - paid_index;
#by Powers: (index - paid_index) % 2^32
#= local was = previous + current
counted double= previous + current;
#= current = math.min(current + cost, 65535)
current_settled double= current + cost;
#= current = math.max(current + cost, 0)
#above current + cost
#= previous = math.max(previous + cost, 0)
previous_settled double= previous + cost;
#= changed = previous + current ~= was
#above previous + current
#= carried = previous * left / w + 0.5
#in window_v1: *
#= carried = carried - carried % 1
#in window_v1: *
#= local spare = w % previous
#in window_v1: *
#= local part = carried * spare
#in window_v1: *
#= if left > carried * ((w - spare) / previous) + (part - part % previous) / previous then
#in window_v1: *
#= carried = carried + 1
#in window_v1: *
#= local end_ns = gap + left + w
#in window_v1: *
#= end_ns = end_ns + 2
#in window_v1: *
#= reset = gap + left
#in window_v1: *
#= local free = amount - current - cost
#in window_v1: *
#= current, changed, reset = current + cost, true, gap + left
#above current + cost
#in window_v1: gap + left
#= status, retry = 0, gap + left
#in window_v1: *
#= count, free, from = current, amount - cost, w
#in window_v1: *
#= local spare = w % count
#in window_v1: *
#= local part = free * spare
#in window_v1: *
#= retry = retry + (from - (free * ((w - spare) / count) + (part - part % count) / count))
#in window_v1: *
#= retry = retry + 2
#in window_v1: *
#= remaining = math.max(amount - carried - current, 0)
#in window_v1: *
#= local i_low, w_low, p0, c0 = index % 2^16, w % 2^16, previous % 256, current % 256
#in window_v1: *
#= local i_high, w_high = (index - i_low) / 2^16, (w % 2^32 - w_low) / 2^16
#in window_v1: *
#= local i2, i0, w2, w0 = i_high % 256, i_low % 256, w_high % 256, w_low % 256
#in window_v1: *
#= (i_high - i2) / 256, i2, (i_low - i0) / 256, i0, (previous - p0) / 256, p0,
#in window_v1: *
#= (current - c0) / 256, c0, (w_high - w2) / 256, w2, (w_low - w0) / 256, w0)
#in window_v1: *
#= end_ns, margin_s = now_sub_ns + end_ns, 1
#in window_v1: *
#= ttl_s = string.format('%d', (end_ns + -end_ns % 1e9) / 1e9 + margin_s)
#in window_v1: *
#= reply[at + 2] = {status, remaining, retry, reset, receipt}
reply_at double= at + 2;
#= ARGV[6 * at - 4], ARGV[6 * at - 3], ARGV[6 * at - 2] = text, ttl_s, uncharged
#above 6 * at
#above 6 * at - 4
#above 6 * at
#above 6 * at - 3
#above 6 * at
#above 6 * at - 2
#= local text, ttl_s = ARGV[6 * at - 4], ARGV[6 * at - 3]
#above 6 * at
#above 6 * at - 4
#above 6 * at
#above 6 * at - 3
#= if text and reply[1] < 1 and ARGV[6 * at + 1] == '' then
#above 6 * at
#above 6 * at + 1
#= local answer = reply[at + 2]
#above at + 2
#= answer[2], answer[4], answer[5] = answer[2] + tonumber(ARGV[6 * at]), ARGV[6 * at - 2], ''
#above 6 * at
uncharged double= remaining_ + cost_charged;
#above 6 * at
#above 6 * at - 2

# Far: ahead at 2^53 or more as gcra_v2 has it, 512 to 3584 more than Far, less what is given
# back
#= ahead = ahead - c
far_less double= ahead_far - c;

{ @FIX(n,0) /\ n in [1,32] /\ @FIX(six_n_,0) /\ six_n_ in [6,192]
/\ @FIX(at,0) /\ at in [1,32] /\ @FIX(six_at_,0) /\ six_at_ in [6,192]

/\ @FIX(now_s,0) /\ now_s in [0,9223372036] /\ @FIX(now_sub_ns,0) /\ now_sub_ns in [0,999999999]
/\ @FIX(cost,0) /\ cost in [-0x1p52,0x1p52] /\ @FIX(interval_,0) /\ interval_ in [1,0x1p52]

/\ @FIX(Charge,0) /\ Charge in [1,9007199254740991]
/\ @FIX(ahead_,0) /\ ahead_ in [0,9007199254740991]
/\ @FIX(charge_,0) /\ ahead_ + charge_ in [0,9007199254740991]
/\ @FIX(debt_near_,0) /\ debt_near_ in [1,0x1p52]
/\ @FIX(debt_far_,0) /\ debt_far_ in [0x1p52,9007199254740991]
/\ @FIX(debt_rest_,0) /\ debt_rest_ in [503599627370496,5007199254740991]

/\ @FIX(paid_text_s,0) /\ paid_text_s in [0,9999999999] /\ @FIX(paid_text_ns,0) /\ paid_text_ns in [0,999999999]
/\ @FIX(paid_near_s,0) /\ paid_near_s in [-9007201,9007201]
/\ @FIX(paid_seconds_,9) /\ @FIX(Paid_n,0) /\ paid_seconds_ + Paid_n in [-9007199254740991,9007199254740991]

/\ @FIX(sum_s,0) /\ sum_s in [0,999999999999999] /\ @FIX(sum_sub_ns,0) /\ sum_sub_ns in [0,999999999]
/\ @FIX(before_text_s,0) /\ before_text_s in [0,999999999999999]
/\ @FIX(before_text_ns,0) /\ before_text_ns in [0,999999999]
/\ @FIX(since_near_s,0) /\ since_near_s in [-9007201,9007201]
/\ @FIX(since_seconds_,9) /\ @FIX(Since_n,0) /\ since_seconds_ + Since_n in [-9007199254740991,9007199254740991]

/\ @FIX(worth_,0) /\ @FIX(since_,0) /\ worth_ - since_ in [-0x1p53,9007199254740991]
/\ @FIX(Given,0) /\ Given in [1,0x1p53]
/\ @FIX(c,0) /\ c in [1,9007199254740991] /\ ahead_ - c in [0,9007199254740991]
/\ @FIX(sub_ns,0) /\ sub_ns in [0,999999999]
/\ @FIX(c_sub_ns,0) /\ c_sub_ns in [0,999999999] /\ c - c_sub_ns in [0,9007199254740991]
/\ @FIX(c_s,0) /\ c_s in [0,9007199]
/\ @FIX(sum_s_,0) /\ sum_s_ in [0,1000000009007198] /\ @FIX(sum_sub_ns_,0) /\ sum_sub_ns_ in [1000000000,1999999998]

/\ @FIX(ns_,0) /\ ns_ in [-9007199254740991,0x1.2p52] /\ @FIX(tat_sub_ns,0) /\ tat_sub_ns in [0,999999999]
/\ @FIX(ns_ - tat_sub_ns,9) /\ ns_ - tat_sub_ns in [-9007200000000000,0x1.2p52]
/\ @FIX(carry_s,0) /\ carry_s in [-9007200,5007200]
/\ @FIX(from_s,0) /\ from_s in [0,9999999999]
/\ @FIX(tat_s_,0) /\ tat_s_ in [0,9999999999]
/\ @FIX(last_s,0) /\ last_s in [0,9999999999]
/\ @FIX(expiry_s,0) /\ expiry_s in [0,9999999999]
/\ @FIX(ahead_s_,0) /\ ahead_s_ in [-1,9007200] /\ @FIX(margin_s,0) /\ margin_s in [2,61]

/\ @FIX(index,0) /\ index in [0,4294967295] /\ @FIX(paid_index,0) /\ paid_index in [0,4294967295]
/\ @FIX(previous,0) /\ previous in [0,65535] /\ @FIX(current,0) /\ current in [0,65535]
/\ @FIX(remaining_,0) /\ remaining_ in [0,0x1p52] /\ @FIX(cost_charged,0) /\ cost_charged in [1,0x1p52]

/\ ahead_far in [0x1p53,9223372036854774784] /\ ahead_far - Far in [512,3584]

-> six_n - 6 * n in [0,0] /\ args - (six_n_ + 1) in [0,0]
/\ six_at - 6 * at in [0,0]
/\ kind_at - (six_at_ - 4) in [0,0]
/\ amount_at - (six_at_ - 3) in [0,0]
/\ period_at - (six_at_ - 2) in [0,0]
/\ burst_at - (six_at_ - 1) in [0,0]
/\ receipt_at - (six_at_ + 1) in [0,0]
/\ reply_at - (at + 2) in [0,0]

/\ charge - Charge in [0,0]
/\ debt - (ahead_ + charge_) in [0,0]
/\ ns - (now_sub_ns + debt_near_) in [0,0]
/\ over_s - (now_s + 4e6) in [0,0]
/\ debt_rest - (debt_far_ - 4e15) in [0,0] /\ debt_rest in [503599627370496,5007199254740991]
/\ ns_far - (now_sub_ns + debt_rest_) in [0,0] /\ ns_far in [0,0x1.2p52]

/\ paid_s - (paid_text_s - now_s) in [0,0]
/\ paid_seconds - paid_near_s * 1e9 in [0,0] /\ @FIX(paid_seconds,9)
/\ paid_n - (paid_text_ns - now_sub_ns) in [0,0]
/\ paid - (paid_seconds_ + Paid_n) in [0,0]
/\ since_s - (sum_s - before_text_s) in [0,0]
/\ since_seconds - since_near_s * 1e9 in [0,0] /\ @FIX(since_seconds,9)
/\ since_n - (sum_sub_ns - before_text_ns) in [0,0]
/\ since - (since_seconds_ + Since_n) in [0,0]

/\ worth - (worth_ - since_) in [0,0]
/\ given - Given in [0,0]
/\ less - (ahead_ - c) in [0,0]
/\ ns_back - (sub_ns - c) in [0,0] /\ ns_back in [-9007199254740991,999999998]
/\ c_whole - (c - c_sub_ns) in [0,0]
/\ c_whole_s - c_s in [0,0]
/\ sum_s_more - (sum_s + c_s) in [0,0] /\ sum_s_more in [0,1000000009007198]
/\ sum_sub_ns_more - (sum_sub_ns + c_sub_ns) in [0,0]
/\ sum_s_next - (sum_s_ + 1) in [0,0]
/\ sum_sub_ns_rest - (sum_sub_ns_ - 1e9) in [0,0]

/\ whole_ns - (ns_ - tat_sub_ns) in [0,0]
/\ whole_s - carry_s in [0,0]
/\ tat_s - (from_s + carry_s) in [0,0]
/\ apart_s - (last_s - tat_s_) in [0,0]
/\ ahead_s - (expiry_s - now_s) in [0,0]
/\ ttl_s - (ahead_s_ + margin_s) in [0,0] /\ ttl_s in [1,2147483647]

/\ behind - (index - paid_index) in [0,0]
/\ counted - (previous + current) in [0,0]
/\ current_settled - (current + cost) in [0,0]
/\ previous_settled - (previous + cost) in [0,0]
/\ uncharged - (remaining_ + cost_charged) in [0,0]

/\ far_less - (Far - c) in [0,4096]
}

far_less - (Far - c) -> (far_less - (ahead_far - c)) + (ahead_far - Far);
