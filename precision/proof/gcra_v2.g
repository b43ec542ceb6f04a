# gcra_v2.lua in binary64, rounded to nearest: each operation, over its whole range.
#
# A line of the script stands after "#=". Its operations follow in the order in which it
# computes them, each as what is proved of it here, or after "#by" with the lemma that covers
# it: precision/lemmas_test.go has a test of each, of what Gappa cannot state. "#above" says
# that the same operation stands further up, "#as" one that this name covers too.
#
# To the left of -> stands what the script's checks and branches give of the operands;
# to the right, what is proved. "x - X in [0,0]" says that the operation x is exact,
# @FIX(x,k) that x is a multiple of 2^k. A name with _ is a value that a line before
# proves or a lemma gives; capitals are real numbers.
# TestLemmaFarGCRA tries the last part here on the whole script.

@double = float<ieee_64,ne>;

# Remainder: a % b is a - floor(a / b) * b. floor_ab is the floor, its product lies between
# a - b and a. Quotient is a / b: less than 1 / b wrong.
Quotient = a / b;
quotient = double(Quotient);
multiple double= floor_ab * b;
remainder double= a - multiple_;

#= if not (period_ns and period_ns >= 1 and period_ns <= 2^52 and period_ns % 1 == 0) then
#by Powers: period_ns % 1
#= if not (amount and amount >= 1 and amount <= period_ns and amount % 1 == 0) then
#by Powers: amount % 1

# whole_ is the quotient of two whole numbers that divide
#= local interval = (period_ns + -period_ns % amount) / amount
#by Remainder: -period_ns % amount
raised double= period_ns + up_p;
interval = double(whole_);

# tau where it is at most 2^52, which it decides exactly: Burst
#= local tau = interval * burst
Tau = interval_ * burst;
tau = double(Tau);
#= if not (burst >= 1 and tau <= 2^52 and burst % 1 == 0) then
#by Powers: burst % 1

#= if not (cost and cost >= 0 and cost <= 2^52 and cost % 1 == 0) then
#by Powers: cost % 1

# now, and the last of it, where now_s is at least 9218868437, as now_s_late is: end_s is
# 9223372036 - now_s. The first clock that tau can make too late is
# 9218868437.227405312 s, 2^63 - 2^52 ns.
#= now_s, now_sub_ns = now_s + 0, time[2] * 1000
#by Digits: now_s + 0
us_ns double= us * 1000;
#= now_s, now_sub_ns = string.sub(now_ns, 1, -10) + 0, string.sub(now_ns, -9)
#by Digits: string.sub(now_ns, 1, -10) + 0
#= now_sub_ns = now_sub_ns + 0
#by Digits: now_sub_ns + 0
#= if now_s >= 9218868437 and (9223372036 - now_s) * 1e9 + (854775807 - now_sub_ns) < tau then
end_s double= 9223372036 - now_s_late;
end_seconds double= end_s_ * 1e9;
end_rest double= 854775807 - now_sub_ns;
end double= end_seconds_ + end_rest_;

#= stored_s = second + 0
#by Digits: second + 0
#= stored_s, sub_ns = ('0' .. string.sub(tat, 1, -10)) + 0, string.sub(tat, -9)
#by Digits: ('0' .. string.sub(tat, 1, -10)) + 0
#= last_s, last_sub_ns = ('0' .. string.sub(last, 1, -10)) + 0, string.sub(last, -9)
#by Digits: ('0' .. string.sub(last, 1, -10)) + 0

# S and N are the brackets. Near is a sum below 2^53 and above -2^53.
#= ahead = (stored_s - now_s) * 1e9 + (sub_ns - now_sub_ns)
s double= stored_s - now_s;
seconds = double(near_s * 1e9);
n double= sub_ns - now_sub_ns;
near double= near_seconds + N;

# the decision below 2^53: Spend is cost * interval, at most tau
#= local status, room = 1, tau - cost * interval
Spend = cost * interval_;
spend = double(Spend);
room double= tau_ - spend_;
#= local retry = ahead - room
retry double= ahead_ - room_;

# the write: ns_ - tat_sub_ns is carry_s times 1e9
#= ahead = ahead + cost * interval
#above cost * interval
ahead_spent double= ahead_ + spend_;
#= local ns = now_sub_ns + ahead
ns double= now_sub_ns + ahead_spent_;
#= local tat_sub_ns = ns % 1e9
#by Remainder: ns % 1e9
#= local tat_s = now_s + (ns - tat_sub_ns) / 1e9
whole_ns double= ns_ - tat_sub_ns;
whole_s = double(carry_s);
tat_s double= now_s + carry_s;

# with credit. In one second the product is 0; else it is at least 1e9, more than the second
# bracket, and rounding does not change the sign of the sum.
#= if (last_s - tat_s) * 1e9 + (last_sub_ns - tat_sub_ns) > 0 then
apart_s double= last_s - tat_s_;
#by Sides: (last_s - tat_s) * 1e9
apart_sub_ns double= last_sub_ns - tat_sub_ns;
#by Sides: (last_s - tat_s) * 1e9 + (last_sub_ns - tat_sub_ns)

# the expiry, without and with credit
#= ttl_s = string.format('%d', expiry_s - now_s + 61)
ahead_s double= expiry_s_tat - now_s;
ttl_s double= ahead_s_ + margin_s;
#= ttl_s = string.format('%d', expiry_s - now_s + 2)
last_ahead_s double= expiry_s_last - now_s;
last_ttl_s double= last_ahead_s_ + margin_s;
#= if expiry_s == now_s + 1 then
next_s double= now_s + 1;

#= local left, remaining = tau - ahead, 0
left double= tau_ - ahead_;
#= remaining = (left - left % interval) / interval
#by Remainder: left % interval
left_whole double= left_ - left_remainder_;
remaining = double(remaining_);

# Far: ahead at 2^53 or more, of a TAT below 2^63, where the cap of 2^63 - 1024 does not
# bite: ahead_far + 2048 is at most that. Far is the exact value.
Far = S * 1e9 + N;
#= ahead = (stored_s - now_s) * 1e9 + (sub_ns - now_sub_ns)
#above stored_s - now_s
far_seconds double= S * 1e9;
#above sub_ns - now_sub_ns
ahead_far double= far_seconds + N;
#= ahead = math.min(ahead + 2048, 2^63 - 1024)
ahead_more double= ahead_far + 2048;
#= retry = ahead - room
far_retry double= ahead_more - room_;

{ @FIX(a,0) /\ a in [1,9007199254740991] /\ @FIX(b,0) /\ b in [1,9007199254740991]
/\ @FIX(floor_ab,0) /\ floor_ab * b in [-0x1p53,0x1p53]
/\ @FIX(multiple_,0) /\ multiple_ in [-0x1p53,0x1p53] /\ a - multiple_ in [0,0x1p53]

/\ @FIX(period_ns,0) /\ period_ns in [1,0x1p52] /\ @FIX(up_p,0) /\ up_p in [0,0x1p52]
/\ @FIX(whole_,0) /\ whole_ in [1,0x1p52]
/\ @FIX(interval_,0) /\ interval_ in [1,0x1p52]
/\ @FIX(burst,0) /\ Tau in [1,0x1p52]

/\ @FIX(us,0) /\ us in [0,999999]
/\ @FIX(now_s_late,0) /\ now_s_late in [9218868437,9999999999]
/\ @FIX(end_s_,0) /\ end_s_ in [-776627963,4503599]
/\ @FIX(end_seconds_,9) /\ end_seconds_ in [-776627963000000000,4503599000000000]
/\ @FIX(end_rest_,0) /\ end_rest_ in [-145224192,854775807]
/\ end_seconds_ + end_rest_ in [-9007199254740991,9007199254740991]

/\ @FIX(now_s,0) /\ now_s in [0,9223372036] /\ @FIX(now_sub_ns,0) /\ now_sub_ns in [0,999999999]
/\ @FIX(stored_s,0) /\ stored_s in [0,9999999999] /\ @FIX(sub_ns,0) /\ sub_ns in [0,999999999]
/\ @FIX(S,0) /\ S in [-9223372036,9223372036] /\ @FIX(N,0) /\ N in [-999999999,999999999]
/\ @FIX(near_s,0) /\ near_s in [-9007201,9007201]
/\ @FIX(near_seconds,9) /\ near_seconds + N in [-9007199254740991,9007199254740991]

/\ @FIX(tau_,0) /\ tau_ in [1,0x1p52] /\ @FIX(cost,0) /\ Spend in [0,0x1p52]
/\ @FIX(spend_,0) /\ tau_ - spend_ in [0,0x1p52]
/\ @FIX(ahead_,0) /\ ahead_ in [0,9007199254740991]
/\ @FIX(room_,0) /\ room_ in [0,0x1p52]
/\ ahead_ + spend_ in [0,0x1p52]
/\ @FIX(ahead_spent_,0) /\ ahead_spent_ in [0,0x1p52]
/\ @FIX(ns_,0) /\ ns_ in [0,0x1.1p52] /\ ns_ - tat_sub_ns in [0,0x1.1p52]
/\ @FIX(tat_sub_ns,0) /\ tat_sub_ns in [0,999999999]
/\ @FIX(carry_s,0) /\ carry_s in [0,4503600]
/\ @FIX(tat_s_,0) /\ tat_s_ in [0,9223372036]
/\ @FIX(expiry_s_tat,0) /\ expiry_s_tat in [0,9223372036] /\ expiry_s_tat - now_s in [0,4503600]
/\ @FIX(expiry_s_last,0) /\ expiry_s_last in [0,9999999999]
/\ @FIX(last_s,0) /\ last_s in [0,9999999999] /\ @FIX(last_sub_ns,0) /\ last_sub_ns in [0,999999999]
/\ @FIX(ahead_s_,0) /\ ahead_s_ in [0,4503600] /\ @FIX(margin_s,0) /\ margin_s in [2,61]
/\ @FIX(last_ahead_s_,0) /\ last_ahead_s_ in [-9223372036,9999999999]
/\ @FIX(left_,0) /\ left_ in [1,0x1p52] /\ @FIX(left_remainder_,0) /\ left_ - left_remainder_ in [0,0x1p52]
/\ @FIX(remaining_,0) /\ remaining_ in [0,0x1p52]

/\ far_seconds + N in [0x1p53,9223372036854774784] /\ ahead_far in [0x1p53,9223372036854772736]

-> (quotient - Quotient) * b in [-0x1.fffffffffffffp-1,0x1.fffffffffffffp-1]
/\ multiple - floor_ab * b in [0,0]
/\ remainder - (a - multiple_) in [0,0]

/\ raised - (period_ns + up_p) in [0,0]
/\ interval - whole_ in [0,0]
/\ tau - Tau in [0,0] /\ @FIX(tau,0)

/\ us_ns - us * 1000 in [0,0] /\ us_ns in [0,999999000]
/\ end_s - (9223372036 - now_s_late) in [0,0]
/\ end_seconds - end_s_ * 1e9 in [0,0] /\ @FIX(end_seconds,9)
/\ end_rest - (854775807 - now_sub_ns) in [0,0]
/\ end - (end_seconds_ + end_rest_) in [0,0]

/\ s - (stored_s - now_s) in [0,0]
/\ n - (sub_ns - now_sub_ns) in [0,0]
/\ seconds - near_s * 1e9 in [0,0] /\ @FIX(seconds,9)
/\ near - (near_seconds + N) in [0,0]

/\ spend - Spend in [0,0]
/\ room - (tau_ - spend_) in [0,0]
/\ retry - (ahead_ - room_) in [0,0]

/\ ahead_spent - (ahead_ + spend_) in [0,0]
/\ ns - (now_sub_ns + ahead_spent_) in [0,0] /\ ns in [0,0x1.1p52]
/\ whole_ns - (ns_ - tat_sub_ns) in [0,0]
/\ whole_s - carry_s in [0,0]
/\ tat_s - (now_s + carry_s) in [0,0]
/\ apart_s - (last_s - tat_s_) in [0,0]
/\ apart_sub_ns - (last_sub_ns - tat_sub_ns) in [0,0]
/\ ahead_s - (expiry_s_tat - now_s) in [0,0]
/\ ttl_s - (ahead_s_ + margin_s) in [0,0] /\ ttl_s in [2,2147483647]
/\ last_ahead_s - (expiry_s_last - now_s) in [0,0]
/\ next_s - (now_s + 1) in [0,0]
/\ last_ttl_s - (last_ahead_s_ + margin_s) in [0,0]

/\ left - (tau_ - ahead_) in [0,0]
/\ left_whole - (left_ - left_remainder_) in [0,0]
/\ remaining - remaining_ in [0,0]

/\ far_seconds - S * 1e9 in [-512,512]
/\ ahead_far - Far in [-1024,1024]
/\ ahead_more - Far in [512,3584]
/\ far_retry - (Far - room_) in [0,4096]
}

(quotient - Quotient) * b -> ((quotient - Quotient) / Quotient) * a { b <> 0, Quotient <> 0 };

ahead_far - Far -> (ahead_far - (far_seconds + N)) + (far_seconds - S * 1e9);
ahead_more - Far -> (ahead_more - (ahead_far + 2048)) + (ahead_far - Far) + 2048;
far_retry - (Far - room_) -> (far_retry - (ahead_more - room_)) + (ahead_more - Far);
