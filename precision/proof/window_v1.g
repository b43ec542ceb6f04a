# window_v1.lua in binary64, rounded to nearest: each operation, over its whole range.
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
# TestLemmaFarWindow tries the far waits on the whole script.

@double = float<ieee_64,ne>;

# Remainder: a % b is a - floor(a / b) * b. floor_ab is the floor, its product lies between
# a - b and a. Quotient is a / b: less than 1 / b wrong.
Quotient = a / b;
quotient = double(Quotient);
multiple double= floor_ab * b;
remainder double= a - multiple_;

#= if not (amount and amount >= 1 and amount <= 65535 and amount % 1 == 0) then
#by Powers: amount % 1
#= if not (w and w >= 1 and w <= 2^52 and w % 1 == 0) then
#by Powers: w % 1
#= w = w + 0.0
#by Digits: w + 0.0
#= if not (cost and cost >= 0 and cost <= 2^52 and cost % 1 == 0) then
#by Powers: cost % 1

# now
#= now_sub_ns = time[2] * 1000
us_ns double= us * 1000;
#= now_sub_ns = now_sub_ns + 0
#by Digits: now_sub_ns + 0
#= local seconds_ns = now_s * 1e9
seconds_ns double= now_s * 1e9;
#= if 2^62 - seconds_ns <= now_sub_ns then
limit double= 0x1p62 - seconds_ns_;

# the index of the window in which the second began, before floor. cycle_ns - began_ns is
# a multiple of w, Times_w. index 0 is exact at sight.
#= local began_ns = fmod(seconds_ns, w)
#by Index: fmod(seconds_ns, w)
#= if cycle_ns >= w * 2^32 then
span double= w * 0x1p32;
#= cycle_ns = fmod(cycle_ns, w * 2^32)
#above w * 2^32
#by Index: fmod(cycle_ns, w * 2^32)
#= local whole = (cycle_ns - began_ns) / w + 0.5
#by Index: cycle_ns - began_ns
Times_w = index * w;
times_w = double(Times_w);
Index = times_w / w;
index_near = double(Index);
whole double= index_near + 0.5;

# from since_ns to left
#= local since_ns = began_ns + now_sub_ns
since_ns double= began_ns + now_sub_ns;
#= local e = since_ns % w
#by Remainder: since_ns % w
#= local index = (whole - whole % 1 + (since_ns - e) / w) % 2^32
#by Powers: whole % 1
#by Index: whole - whole % 1
since_whole double= since_ns_ - e;
over_near = double(over);
index_sum double= index + over;
#by Powers: (whole - whole % 1 + (since_ns - e) / w) % 2^32
#= local left = w - e
left double= w - e;

# what is stored
#= if ((w3 * 256 + w2) * 256 + w1) * 256 + w0 ~= w % 2^32 then
#by Powers: *
#= local stored = ((i3 * 256 + i2) * 256 + i1) * 256 + i0
#by Powers: *
#= previous, current, stays = p1 * 256 + p0, c1 * 256 + c0, true
#by Powers: *
#= previous = c1 * 256 + c0
#by Powers: *
#= previous, current, gap, stays = p1 * 256 + p0, c1 * 256 + c0, until_ns, true
#by Powers: *
#= local ahead = (index - stored) % 2^32
apart double= index - stored;
#by Powers: (index - stored) % 2^32

# a clock behind by one window, or n windows where the gap is at most a minute, so that
# (n - 1) * w is less than that
#= local until_ns = (2^32 - ahead) * w - e
behind double= 0x1p32 - ahead_;
N_w = n * w_short;
n_w = double(N_w);
gap_many double= N_w_ - e;

# the nearest whole number of previous * left / w, and the exact test
#= carried = previous * left / w + 0.5
Carried = previous * left_ / w;
carried_product double= previous * left_;
carried_quotient double= carried_product / w;
nearest_carried double= carried_quotient + 0.5;
#= carried = carried - carried % 1
#by Powers: carried % 1
#by Carried: carried - carried % 1
#= local spare = w % previous
#by Remainder: w % previous
#= local part = carried * spare
carried_rest double= carried * spare;
#= if left > carried * ((w - spare) / previous) + (part - part % previous) / previous then
share_whole double= w - spare;
share = double(share_);
Carried_share = carried * share_;
carried_share = double(Carried_share);
#by Remainder: part % previous
part_whole double= part_ - part_rest;
part_share = double(floor_cr);
edge double= Carried_share_ + floor_cr;
#= carried = carried + 1
carried_more double= carried_ + 1;

#= local free = amount - current - cost
kept double= amount - current;
free double= kept_ - cost;
#= current = current + cost
spent double= current + cost_fits;
#= local remaining = amount - carried - current
less double= amount - carried_;
remaining double= less_ - current;

# waits with the clock in the window: Faded is floor(free * w / count), computed as
# carried * w / previous is above. From is 0 or w.
#= count, free, from = current, amount - cost, w
room double= amount - cost_fits;
#= local spare = w % count
#by Remainder: w % count
#= local part = free * spare
free_rest double= free_ * spare;
#= retry = retry + (from - (free * ((w - spare) / count) + (part - part % count) / count))
#above w - spare
faded_share = double(share_f_);
Free_share = free_ * share_f_;
free_share = double(Free_share);
#by Remainder: part % count
#as part_whole: part - part % count
faded_rest = double(floor_fr);
faded double= Free_share_ + floor_fr;
fade double= from - Faded;
near_wait double= retry_near_ + near_fade;
#= status, retry = 0, gap + left
gap_left double= gap + left_;
#= reset = gap + left
#above gap + left
#= local end_ns = gap + left + w
#above gap + left
near_end double= left_ + w;

# with a clock behind: gap + left is at most 2^53, and only the next sum can be above it.
#= retry = retry + (from - (free * ((w - spare) / count) + (part - part % count) / count))
#above w - spare
#above (w - spare) / count
#above free * ((w - spare) / count)
#above part % count
#above part - part % count
#above (part - part % count) / count
#above free * ((w - spare) / count) + (part - part % count) / count
#above from - (free * ((w - spare) / count) + (part - part % count) / count)
Far_wait = retry_far_ + fade_;
retry_wait = double(Far_wait);
#= retry = retry + 2
far_more double= retry_wait + 2;
#= local end_ns = gap + left + w
#above gap + left
Far_end = gap_left_ + w;
end_ns_far = double(Far_end);
#= end_ns = end_ns + 2
end_more double= end_ns_far + 2;

# the bytes
#= local i_low, w_low, p0, c0 = index % 2^16, w % 2^16, previous % 256, current % 256
#by Powers: *
#= local i_high, w_high = (index - i_low) / 2^16, (w % 2^32 - w_low) / 2^16
#by Powers: *
#= local i2, i0, w2, w0 = i_high % 256, i_low % 256, w_high % 256, w_low % 256
#by Powers: *
#= (i_high - i2) / 256, i2, (i_low - i0) / 256, i0, (previous - p0) / 256, p0,
#by Powers: *
#= (current - c0) / 256, c0, (w_high - w2) / 256, w2, (w_low - w0) / 256, w0)
#by Powers: *

# the expiry. By the server's clock gap is 0, or the expiry is kept.
#= end_ns, margin_s = now_sub_ns + end_ns, 1
End = now_sub_ns + end_ns_near_;
end_ns = double(End);
# the ceiling of whole seconds: End_s is end_ns / 1e9, less than 1e-9 wrong, and ceil_s_ its
# ceiling. What ends above 2^53 is even, so 2e-9 or more from the whole seconds.
End_s = end_ns_ / 1000000000;
end_s = double(End_s);
ceil_ns double= ceil_s_ * 1e9;
lacks double= ceil_ns_ - end_ns_;
#= string.format('%d', (end_ns + -end_ns % 1e9) / 1e9 + margin_s))
#by Seconds: -end_ns % 1e9
raised double= end_ns_ + lacks_;
raised_s = double(ceil_s_);
ttl_s double= ceil_s_ + margin_s;

{ @FIX(a,0) /\ a in [1,9007199254740991] /\ @FIX(b,0) /\ b in [1,9007199254740991]
/\ @FIX(floor_ab,0) /\ floor_ab * b in [-0x1p53,0x1p53]
/\ @FIX(multiple_,0) /\ multiple_ in [-0x1p53,0x1p53] /\ a - multiple_ in [0,0x1p53]

/\ @FIX(us,0) /\ us in [0,999999]
/\ @FIX(now_s,0) /\ now_s in [0,4611686018] /\ @FIX(seconds_ns_,9) /\ seconds_ns_ in [0,0x1p62]
/\ @FIX(now_sub_ns,0) /\ now_sub_ns in [0,999999999]

/\ @FIX(w,0) /\ w in [1,0x1p52] /\ @FIX(index,0) /\ index in [1,4294967295]
/\ @FIX(began_ns,0) /\ began_ns in [0,4503599627370495]
/\ @FIX(since_ns_,0) /\ since_ns_ in [0,0x1.1p52]
/\ @FIX(over,0) /\ over in [0,1000000000] /\ since_ns_ - e in [0,0x1.1p52]
/\ @FIX(e,0) /\ e in [0,4503599627370495] /\ w - e in [1,0x1p52]
/\ @FIX(stored,0) /\ stored in [0,4294967295] /\ @FIX(ahead_,0) /\ ahead_ in [0x1p31,4294967295]
/\ @FIX(n,0) /\ n in [2,0x1p31] /\ @FIX(w_short,0) /\ N_w in [2,120000000000]
/\ @FIX(N_w_,0) /\ N_w_ in [2,120000000000]

/\ @FIX(previous,0) /\ previous in [1,65535] /\ @FIX(left_,0) /\ left_ in [1,0x1p52]
/\ Carried in [0x1p-52,65535] /\ previous * left_ in [1,0x1p68]
/\ @FIX(carried,0) /\ carried in [0,65535] /\ @FIX(spare,0) /\ spare in [0,65534]
/\ w - spare in [0,0x1p52] /\ @FIX(share_,0) /\ share_ in [0,0x1p52] /\ Carried_share in [0,0x1p52]
/\ @FIX(Carried_share_,0) /\ Carried_share_ in [0,0x1p52] /\ @FIX(floor_cr,0) /\ floor_cr in [0,65535]
/\ @FIX(part_,0) /\ part_ in [0,0x1p32] /\ @FIX(part_rest,0) /\ part_ - part_rest in [0,0x1p32]
/\ @FIX(carried_,0) /\ carried_ in [0,65535] /\ @FIX(current,0) /\ current in [0,65535]
/\ @FIX(amount,0) /\ amount in [1,65535] /\ @FIX(cost,0) /\ cost in [0,0x1p52]
/\ @FIX(kept_,0) /\ kept_ in [-65535,65535] /\ @FIX(less_,0) /\ less_ in [-65535,65535] /\ @FIX(cost_fits,0) /\ cost_fits in [0,65535]

/\ @FIX(from,0) /\ from in [0,0x1p52] /\ @FIX(Faded,0) /\ Faded in [0,0x1p52]
/\ @FIX(free_,0) /\ free_ in [0,65535] /\ @FIX(share_f_,0) /\ share_f_ in [0,0x1p52]
/\ Free_share in [0,0x1p52] /\ @FIX(Free_share_,0) /\ Free_share_ in [0,0x1p52]
/\ @FIX(floor_fr,0) /\ floor_fr in [0,65535]
/\ @FIX(near_fade,0) /\ near_fade in [-0x1p52,0x1p52] /\ @FIX(retry_near_,0) /\ retry_near_ in [1,0x1p52]
/\ @FIX(gap,0) /\ gap in [0,0x1p52] /\ @FIX(gap_left_,0) /\ gap_left_ in [2,0x1p53]
/\ @FIX(retry_far_,0) /\ retry_far_ in [2,0x1p53]
/\ @FIX(fade_,0) /\ fade_ in [-0x1p52,0x1p52] /\ Far_wait in [0x1p53,0x1.8p53]
/\ Far_end in [0x1p53,0x1.8p53]
/\ @FIX(end_ns_near_,0) /\ end_ns_near_ in [2,0x1p53]
/\ @FIX(end_ns_,0) /\ end_ns_ in [2,0x1.8000000000001p53]
/\ @FIX(ceil_s_,0) /\ ceil_s_ in [1,13510799] /\ @FIX(ceil_ns_,9)
/\ ceil_ns_ - end_ns_ in [0,999999999]
/\ @FIX(end_ns_ + lacks_,9) /\ end_ns_ + lacks_ in [1000000000,13510799000000000]
/\ @FIX(margin_s,0) /\ margin_s in [1,60]

-> (quotient - Quotient) * b in [-0x1.fffffffffffffp-1,0x1.fffffffffffffp-1]
/\ multiple - floor_ab * b in [0,0]
/\ remainder - (a - multiple_) in [0,0]

/\ us_ns - us * 1000 in [0,0] /\ us_ns in [0,999999000]
/\ seconds_ns - now_s * 1e9 in [0,0] /\ @FIX(seconds_ns,9)
/\ limit - (0x1p62 - seconds_ns_) in [0,0]

/\ span - w * 0x1p32 in [0,0]
/\ whole - (index + 0.5) in [-0x1p-20,0x1p-20]
/\ since_ns - (began_ns + now_sub_ns) in [0,0] /\ since_ns in [0,0x1.1p52]
/\ since_whole - (since_ns_ - e) in [0,0]
/\ over_near - over in [0,0]
/\ index_sum - (index + over) in [0,0]
/\ left - (w - e) in [0,0]

/\ apart - (index - stored) in [0,0]
/\ behind - (0x1p32 - ahead_) in [0,0] /\ behind in [1,0x1p31]
/\ n_w - N_w in [0,0]
/\ gap_many - (N_w_ - e) in [0,0]

/\ nearest_carried - (Carried + 0.5) in [-0x1p-36,0x1p-36]
/\ share - share_ in [0,0]
/\ carried_share - Carried_share in [0,0]
/\ carried_rest - carried * spare in [0,0]
/\ share_whole - (w - spare) in [0,0]
/\ part_whole - (part_ - part_rest) in [0,0]
/\ part_share - floor_cr in [0,0]
/\ carried_more - (carried_ + 1) in [0,0]
/\ edge - (Carried_share_ + floor_cr) in [0,0]
/\ kept - (amount - current) in [0,0]
/\ free - (kept_ - cost) in [0,0]
/\ room - (amount - cost_fits) in [0,0]
/\ spent - (current + cost_fits) in [0,0]
/\ less - (amount - carried_) in [0,0]
/\ remaining - (less_ - current) in [0,0]

/\ free_rest - free_ * spare in [0,0]
/\ faded_share - share_f_ in [0,0]
/\ free_share - Free_share in [0,0]
/\ faded_rest - floor_fr in [0,0]
/\ faded - (Free_share_ + floor_fr) in [0,0]

/\ fade - (from - Faded) in [0,0] /\ fade in [-0x1p52,0x1p52]
/\ near_wait - (retry_near_ + near_fade) in [0,0]
/\ near_end - (left_ + w) in [0,0] /\ near_end in [2,0x1p53]
/\ gap_left - (gap + left_) in [0,0] /\ gap_left in [1,0x1p53]
/\ retry_wait - Far_wait in [-1,1]
/\ far_more - Far_wait in [1,3]
/\ end_ns_far - Far_end in [-1,1]
/\ end_more - Far_end in [1,3]

/\ end_ns - End in [-1,1]
/\ end_s - End_s in [-0x1p-30,0x1p-30]
/\ ceil_ns - ceil_s_ * 1e9 in [0,0] /\ @FIX(ceil_ns,9)
/\ lacks - (ceil_ns_ - end_ns_) in [0,0]
/\ raised - (end_ns_ + lacks_) in [0,0]
/\ raised_s - ceil_s_ in [0,0]
/\ ttl_s - (ceil_s_ + margin_s) in [0,0] /\ ttl_s in [2,2147483647]
}

(quotient - Quotient) * b -> ((quotient - Quotient) / Quotient) * a { b <> 0, Quotient <> 0 };
Index - index -> ((times_w - Times_w) / Times_w) * index { w <> 0, Times_w <> 0 };
far_more - Far_wait -> (far_more - (retry_wait + 2)) + (retry_wait - Far_wait) + 2;
end_more - Far_end -> (end_more - (end_ns_far + 2)) + (end_ns_far - Far_end) + 2;
