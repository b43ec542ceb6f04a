# window_v1.lua in binary64, rounded to nearest: each operation, over its whole range.
#
# To the left of -> stands what the script's checks and branches give of the operands;
# to the right, what is proved. "x - X in [0,0]" says that the operation x is exact,
# @FIX(x,k) that x is a multiple of 2^k. A name with _ is a value that a line before
# proves or a lemma gives; capitals are real numbers.
#
# Gappa cannot state %, fmod and floor of a quotient, the nearest whole number, nor that
# a rounded sum keeps its side of a double. Tests in precision/lemmas_test.go cover
# these: TestLemmaRemainder, TestLemmaQuotient, TestLemmaIndex, TestLemmaCarried,
# TestLemmaSides, TestLemmaClock, TestLemmaSeconds. fmod is exact by its definition in
# C. TestLemmaFarWindow tries the far waits on the whole script.

@double = float<ieee_64,ne>;

# a % b is a - floor(a / b) * b: floor_ab is the floor, its product lies between a - b
# and a. Quotient is a / b: less than 1 / b wrong.
Quotient = a / b;
quotient = double(Quotient);
multiple double= floor_ab * b;
remainder double= a - multiple_;

# now
us_ns double= us * 1000;
seconds_ns double= now_s * 1e9;
limit double= 0x1p62 - seconds_ns_;

# the index of the window in which the second began, before floor: Times_w is
# cycle_ns - began_ns, a multiple of w. index 0 is exact at sight.
span double= w * 0x1p32;
Times_w = index * w;
times_w = double(Times_w);
Index = times_w / w;
index_near = double(Index);
whole double= index_near + 0.5;

# from since_ns to left
since_ns double= began_ns + now_sub_ns;
since_whole double= since_ns_ - e;
over_near = double(over);
index_sum double= index + over;
left double= w - e;

# the period's bytes: w % 2^32 is period_
high double= period_ - w_low;

# a clock behind: behind is i - stored mod 2^32. One window behind, or n windows where
# the gap is at most a minute, so that (n - 1) * w is less than that.
apart double= index - stored;
behind double= 0x1p32 - apart_;
N_w = n * short_w;
n_w = double(N_w);
gap_many double= N_w_ - e;

# carried: the nearest whole number of previous * left / w, and the exact test
Carried = previous * left_ / w;
nearest_carried double= previous * left_ / w + 0.5;
share = double(share_);
Carried_share = carried * share_;
carried_share = double(Carried_share);
carried_rest double= carried * spare;
edge double= Carried_share_ + floor_cr;
kept double= amount - current;
free double= kept_ - cost;
room double= amount - cost_fits;
remaining double= kept_ - carried_;

# waits with the clock in the window: Faded is floor(free * w / count), computed as
# carried * w / previous is above. From is 0 or w.
fade double= from - Faded;
near_wait double= left_ + near_fade;
near_end double= left_ + w;

# with a clock behind: gap + w is at most 2^53, and only the next sum can be above it.
gap_left double= gap + w;
Far_wait = gap_left_ + fade_;
far_wait = double(Far_wait);
far_more double= far_wait + 2;

# the expiry. By the server's clock gap is 0, or the expiry is kept.
End = now_sub_ns + near_end_;
end_ns = double(End);
# the ceiling of whole seconds, (end_ns + -end_ns % 1e9) / 1e9: End_s is end_ns / 1e9, less
# than 1e-9 wrong, and ceil_s_ its ceiling. What ends above 2^53 is even, so 2e-9 or more
# from the whole seconds.
End_s = end_ns_ / 1000000000;
end_s = double(End_s);
ceil_ns double= ceil_s_ * 1e9;
lacks double= ceil_ns_ - end_ns_;
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
/\ @FIX(period_,0) /\ period_ in [0,4294967295] /\ @FIX(w_low,0) /\ w_low in [0,65535]
/\ @FIX(stored,0) /\ stored in [0,4294967295] /\ @FIX(apart_,0) /\ apart_ in [0x1p31,4294967295]
/\ @FIX(n,0) /\ n in [2,0x1p31] /\ @FIX(short_w,0) /\ N_w in [2,120000000000]
/\ @FIX(N_w_,0) /\ N_w_ in [2,120000000000]

/\ @FIX(previous,0) /\ previous in [1,65535] /\ @FIX(left_,0) /\ left_ in [1,0x1p52]
/\ Carried in [0x1p-52,65535] /\ previous * left_ in [1,0x1p68]
/\ @FIX(carried,0) /\ carried in [0,65535] /\ @FIX(spare,0) /\ spare in [0,65534]
/\ @FIX(share_,0) /\ share_ in [0,0x1p52] /\ Carried_share in [0,0x1p52]
/\ @FIX(Carried_share_,0) /\ Carried_share_ in [0,0x1p52] /\ @FIX(floor_cr,0) /\ floor_cr in [0,65535]
/\ @FIX(carried_,0) /\ carried_ in [0,65535] /\ @FIX(current,0) /\ current in [0,65535]
/\ @FIX(amount,0) /\ amount in [1,65535] /\ @FIX(cost,0) /\ cost in [0,0x1p52]
/\ @FIX(kept_,0) /\ kept_ in [-65535,65535] /\ @FIX(cost_fits,0) /\ cost_fits in [0,65535]

/\ @FIX(from,0) /\ from in [0,0x1p52] /\ @FIX(Faded,0) /\ Faded in [0,0x1p52]
/\ @FIX(near_fade,0) /\ near_fade in [-0x1p52,0x1p52]
/\ @FIX(gap,0) /\ gap in [1,0x1p52] /\ @FIX(gap_left_,0) /\ gap_left_ in [2,0x1p53]
/\ @FIX(fade_,0) /\ fade_ in [-0x1p52,0x1p52] /\ Far_wait in [0x1p53,0x1.8p53]
/\ @FIX(near_end_,0) /\ near_end_ in [2,0x1p53]
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
/\ high - (period_ - w_low) in [0,0]

/\ apart - (index - stored) in [0,0]
/\ behind - (0x1p32 - apart_) in [0,0] /\ behind in [1,0x1p31]
/\ n_w - N_w in [0,0]
/\ gap_many - (N_w_ - e) in [0,0]

/\ nearest_carried - (Carried + 0.5) in [-0x1p-36,0x1p-36]
/\ share - share_ in [0,0]
/\ carried_share - Carried_share in [0,0]
/\ carried_rest - carried * spare in [0,0]
/\ edge - (Carried_share_ + floor_cr) in [0,0]
/\ kept - (amount - current) in [0,0]
/\ free - (kept_ - cost) in [0,0]
/\ room - (amount - cost_fits) in [0,0]
/\ remaining - (kept_ - carried_) in [0,0]

/\ fade - (from - Faded) in [0,0] /\ fade in [-0x1p52,0x1p52]
/\ near_wait - (left_ + near_fade) in [0,0]
/\ near_end - (left_ + w) in [0,0] /\ near_end in [2,0x1p53]
/\ gap_left - (gap + w) in [0,0] /\ gap_left in [2,0x1p53]
/\ far_wait - Far_wait in [-1,1]
/\ far_more - Far_wait in [1,3]

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
far_more - Far_wait -> (far_more - (far_wait + 2)) + (far_wait - Far_wait) + 2;
