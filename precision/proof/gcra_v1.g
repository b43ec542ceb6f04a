# gcra_v1.lua in binary64, rounded to nearest: each operation, over its whole range.
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

# less than 1 / interval wrong, which decides exactly: Burst
#= if not (burst and burst >= 1 and burst <= 2^52 / interval and burst % 1 == 0) then
Most = 0x1p52 / interval_;
most = double(Most);
#by Powers: burst % 1

#= if not (cost and cost >= 0 and cost <= 2^52 and cost % 1 == 0) then
#by Powers: cost % 1

# up_i is the remainder
#= interval = interval + -interval % 256
#by Powers: -interval % 256
interval1 double= interval_ + up_i;
#= local tau = interval * burst
tau double= (interval_ + up_i) * burst;

# now
#= now_s, now_sub_ns = now_s + 0, time[2] * 1000
#by Digits: now_s + 0
us_ns double= us * 1000;
#= now_s, now_sub_ns = string.sub(now_ns, 1, -10) + 0, string.sub(now_ns, -9)
#by Digits: string.sub(now_ns, 1, -10) + 0
#= local below = now_sub_ns % 256
#by Powers: now_sub_ns % 256
#= local grid_sub_ns = now_sub_ns - below
grid_sub_ns double= now_sub_ns - below;
#= local now_grid = now_s * 1e9 + grid_sub_ns
seconds_ns double= now_s * 1e9;
now_grid double= seconds_ns_ + grid_sub_ns_;
#= if now_grid + up > 2^61 - tau then
up_to_grid double= now_grid_ + up;
limit double= 0x1p61 - tau_;

# tat
#= stored_s = second + 0
#by Digits: second + 0
#= stored_s, sub_ns = ('0' .. string.sub(state, 1, -10)) + 0, string.sub(state, -9)
#by Digits: ('0' .. string.sub(state, 1, -10)) + 0
#= local stored_ns = stored_s * 1e9
stored_ns double= stored_s * 1e9;
#= sub_ns = sub_ns + -sub_ns % 256
#by Powers: -sub_ns % 256
sub_ns_up double= sub_ns + up_t;
#= if sub_ns > 2^61 - stored_ns then
tat_limit double= 0x1p61 - stored_ns_;
#= ahead = stored_ns + sub_ns - now_grid
tat double= stored_ns_ + sub_ns_up_;
ahead double= tat_ - now_grid_;

# the decision: Spend is cost * interval, at most tau
#= local status, retry, reset = 1, ahead - (tau - cost * interval), ahead - below
Spend = cost * interval_256_;
spend = double(Spend);
room double= tau_ - spend_;
retry double= ahead_ - room_;
reset_near double= ahead_near_ - below;
#= retry = retry - below
retry_near double= retry_near_ - below;

# the write: tat_sub_ns is ns % 1e9, on the grid as 1e9 is 512 * 5^9. Whole_ns is whole_s_
# times 1e9.
#= ahead = ahead + cost * interval
#above cost * interval
ahead_spent double= ahead_base + spend_;
#= reset = ahead - below
#above ahead - below
#= local ns = grid_sub_ns + ahead
ns double= grid_sub_ns_ + ahead_spent_;
#= local tat_sub_ns = ns % 1e9
#by Split: ns % 1e9
#= local ahead_s = (ns - tat_sub_ns) / 1e9
Whole_ns = ns_ - tat_sub_ns;
whole_ns = double(Whole_ns);
ahead_s = double(whole_s_);
#= local tat_s = now_s + ahead_s
tat_s double= now_s_ + ahead_s_;
#= ttl_s = string.format('%d', ahead_s + 61)
ttl_s double= ahead_s_ + margin_s;
#= ttl_s = string.format('%d', ahead_s + 2)
#as ttl_s: ahead_s + 2

# remaining: floor_li is floor(left / interval), remaining_ a whole quotient
#= local left, remaining = tau - ahead + up, 0
less double= tau_ - ahead_;
left double= less_ + up;
#= remaining = (left - left % interval) / interval
#by Remainder: left % interval
left_multiple double= floor_li * interval_256_;
left_remainder double= left_ - left_multiple_;
left_whole double= left_ - left_remainder_;
remaining = double(remaining_);

{ @FIX(a,0) /\ a in [1,9007199254740991] /\ @FIX(b,0) /\ b in [1,9007199254740991]
/\ @FIX(floor_ab,0) /\ floor_ab * b in [-0x1p53,0x1p53]
/\ @FIX(multiple_,0) /\ multiple_ in [-0x1p53,0x1p53] /\ a - multiple_ in [0,0x1p53]

/\ @FIX(period_ns,0) /\ period_ns in [1,0x1p52] /\ @FIX(up_p,0) /\ up_p in [0,0x1p52]
/\ @FIX(whole_,0) /\ whole_ in [1,0x1p52]
/\ @FIX(interval_,0) /\ interval_ in [1,0x1p52] /\ up_i in [0,255] /\ @FIX(interval_ + up_i,8)
/\ @FIX(burst,0) /\ burst in [1,0x1p52] /\ interval_ * burst in [1,0x1p52]

/\ @FIX(us,0) /\ us in [0,999999]
/\ @FIX(now_sub_ns,0) /\ now_sub_ns in [0,999999999] /\ @FIX(below,0) /\ below in [0,255]
/\ @FIX(now_s,0) /\ now_s in [0,4611686018]
/\ @FIX(seconds_ns_,9) /\ @FIX(grid_sub_ns_,8) /\ grid_sub_ns_ in [0,999999999]
/\ seconds_ns_ + grid_sub_ns_ in [0,0x1p61]
/\ @FIX(now_grid_,8) /\ @FIX(up,8) /\ up in [0,256] /\ now_grid_ in [0,0x1p61]
/\ now_grid_ + up in [0,0x1p61]
/\ @FIX(tau_,8) /\ tau_ in [256,0x1p60]

/\ @FIX(stored_s,0) /\ stored_s in [0,4611686018]
/\ @FIX(sub_ns,0) /\ sub_ns in [0,999999999] /\ @FIX(up_t,0) /\ up_t in [0,255]
/\ @FIX(stored_ns_,9) /\ stored_ns_ in [0,0x1p62]
/\ @FIX(sub_ns_up_,8) /\ stored_ns_ + sub_ns_up_ in [0,0x1p61]
/\ @FIX(tat_,8) /\ tat_ in [0,0x1p61]

/\ @FIX(cost,0) /\ @FIX(interval_256_,8) /\ Spend in [0,0x1p60]
/\ @FIX(spend_,8) /\ tau_ - spend_ in [0,0x1p60]
/\ @FIX(ahead_,8) /\ ahead_ in [0,0x1p61]
/\ @FIX(room_,8) /\ room_ in [0,0x1p60]
/\ @FIX(retry_near_,8) /\ retry_near_ in [256,9007199254740736]
/\ @FIX(ahead_near_,8) /\ ahead_near_ in [0,9007199254740736]
/\ @FIX(ahead_base,8) /\ ahead_base + spend_ in [0,0x1.0000000000001p60]
/\ @FIX(ahead_spent_,8) /\ ahead_spent_ in [256,0x1.0000000000001p60]
/\ @FIX(ns_,8) /\ ns_ in [256,1152921505606847232] /\ @FIX(tat_sub_ns,8) /\ tat_sub_ns in [0,999999999]
/\ @FIX(Whole_ns,9) /\ Whole_ns in [0,1152921505606847232]
/\ @FIX(whole_s_,0) /\ whole_s_ in [0,1152921505]
/\ @FIX(ahead_s_,0) /\ ahead_s_ in [0,1152921505] /\ @FIX(now_s_,0) /\ now_s_ in [0,2305843009]
/\ @FIX(margin_s,0) /\ margin_s in [2,61]

/\ @FIX(less_,8) /\ less_ in [-0x1p61,0x1p60]
/\ @FIX(left_,8) /\ left_ in [256,0x1p60] /\ @FIX(floor_li,0) /\ floor_li * interval_256_ in [0,0x1p60]
/\ @FIX(left_multiple_,8) /\ left_ - left_multiple_ in [0,0x1p60]
/\ @FIX(left_remainder_,8) /\ left_ - left_remainder_ in [0,0x1p60]
/\ @FIX(remaining_,0) /\ remaining_ in [0,0x1p52]

-> (quotient - Quotient) * b in [-0x1.fffffffffffffp-1,0x1.fffffffffffffp-1]
/\ multiple - floor_ab * b in [0,0]
/\ remainder - (a - multiple_) in [0,0]

/\ raised - (period_ns + up_p) in [0,0]
/\ interval - whole_ in [0,0]
/\ (most - Most) * interval_ in [-0.5,0.5]
/\ interval1 - (interval_ + up_i) in [0,0]
/\ tau - (interval_ + up_i) * burst in [0,0] /\ tau in [1,0x1p60] /\ @FIX(tau,8)

/\ us_ns - us * 1000 in [0,0] /\ us_ns in [0,999999000]
/\ grid_sub_ns - (now_sub_ns - below) in [0,0]
/\ seconds_ns - now_s * 1e9 in [0,0] /\ @FIX(seconds_ns,9)
/\ now_grid - (seconds_ns_ + grid_sub_ns_) in [0,0] /\ @FIX(now_grid,8)
/\ up_to_grid - (now_grid_ + up) in [0,0]
/\ limit - (0x1p61 - tau_) in [0,0]

/\ stored_ns - stored_s * 1e9 in [0,0] /\ @FIX(stored_ns,9)
/\ sub_ns_up - (sub_ns + up_t) in [0,0]
/\ tat_limit - (0x1p61 - stored_ns_) in [0,0]
/\ tat - (stored_ns_ + sub_ns_up_) in [0,0] /\ @FIX(tat,8)
/\ ahead - (tat_ - now_grid_) in [0,0] /\ @FIX(ahead,8)

/\ spend - Spend in [0,0] /\ @FIX(spend,8)
/\ room - (tau_ - spend_) in [0,0] /\ @FIX(room,8)
/\ retry - (ahead_ - room_) in [0,0] /\ @FIX(retry,8)
/\ retry_near - (retry_near_ - below) in [0,0] /\ retry_near in [1,0x1p53]
/\ reset_near - (ahead_near_ - below) in [0,0]

/\ ahead_spent - (ahead_base + spend_) in [0,0] /\ @FIX(ahead_spent,8)
/\ ns - (grid_sub_ns_ + ahead_spent_) in [0,0] /\ @FIX(ns,8)
/\ whole_ns - Whole_ns in [0,0] /\ @FIX(whole_ns,9)
/\ ahead_s - whole_s_ in [0,0]
/\ tat_s - (now_s_ + ahead_s_) in [0,0]
/\ ttl_s - (ahead_s_ + margin_s) in [0,0] /\ ttl_s in [2,2147483647]

/\ less - (tau_ - ahead_) in [0,0] /\ @FIX(less,8)
/\ left - (less_ + up) in [0,0] /\ @FIX(left,8)
/\ left_multiple - floor_li * interval_256_ in [0,0] /\ @FIX(left_multiple,8)
/\ left_remainder - (left_ - left_multiple_) in [0,0]
/\ left_whole - (left_ - left_remainder_) in [0,0]
/\ remaining - remaining_ in [0,0]
}

(quotient - Quotient) * b -> ((quotient - Quotient) / Quotient) * a { b <> 0, Quotient <> 0 };
(most - Most) * interval_ -> ((most - Most) / Most) * 0x1p52 { interval_ <> 0, Most <> 0 };
(interval_ + up_i) * burst -> interval_ * burst + up_i * burst;
