# window_v2.lua in binary64, rounded to nearest: each operation, over its whole range.
#
# To the left of -> stands what the script's checks and branches give of the operands;
# to the right, what is proved. "x - X in [0,0]" says that the operation x is exact,
# @FIX(x,k) that x is a multiple of 2^k. A name with _ is a value that a line before
# proves or a lemma gives; capitals are real numbers.
#
# Gappa cannot state %, fmod and floor of a quotient, the nearest whole number, nor that
# a rounded sum keeps its side of a double. Tests in precision/lemmas_test.go cover
# these: TestLemmaRemainder, TestLemmaQuotient, TestLemmaIndex, TestLemmaCarried,
# TestLemmaSides, TestLemmaClock, TestLemmaMilliseconds. fmod is exact by its
# definition in C. TestLemmaFarWindow tries the far waits on the whole script.

@double = float<ieee_64,ne>;

# a % b is a - floor(a / b) * b: floor_ab is the floor, its product lies between a - b
# and a. Quotient is a / b: less than 1 / b wrong.
Quotient = a / b;
quotient = double(Quotient);
multiple double= floor_ab * b;
remainder double= a - multiple_;

# now
us_ns double= us * 1000;
seconds double= now_s * 1e9;
limit double= 0x1p62 - seconds_;

# the index of the window of seconds, before floor: Times_w is fmod(seconds, w * 2^32) - e,
# a multiple of w. index 0 is exact at sight.
span double= w * 0x1p32;
Times_w = index * w;
times_w = double(Times_w);
Index = times_w / w;
index_near = double(Index);
nearest double= index_near + 0.5;

# from e + now_ns to left
e_ns double= e + now_ns;
whole double= e_ns_ - rest_;
over_near = double(over);
i double= index + over;
left double= w - rest_;

# a clock behind: behind is i - stored mod 2^32. One window behind, or n windows where
# the gap is at most a minute, so that (n - 1) * w is less than that.
apart double= index - stored;
behind double= 0x1p32 - apart_;
N_w = n * short_w;
n_w = double(N_w);
gap_many double= N_w_ - rest_;

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
near_whole double= left_ + w;

# with a clock behind: gap + w is at most 2^53, and only the next sum can be above it.
gap_left double= gap + w;
Far_wait = gap_left_ + fade_;
far_wait = double(Far_wait);
far_more double= far_wait + 2;
Ttl = whole_ / 1000000;
ttl_ms = double(Ttl);
ttl double= ttl_ + margin_ms;

{ @FIX(a,0) /\ a in [1,9007199254740991] /\ @FIX(b,0) /\ b in [1,9007199254740991]
/\ @FIX(floor_ab,0) /\ floor_ab * b in [-0x1p53,0x1p53]
/\ @FIX(multiple_,0) /\ multiple_ in [-0x1p53,0x1p53] /\ a - multiple_ in [0,0x1p53]

/\ @FIX(us,0) /\ us in [0,999999]
/\ @FIX(now_s,0) /\ now_s in [0,4611686018] /\ @FIX(seconds_,9) /\ seconds_ in [0,0x1p62]
/\ @FIX(now_ns,0) /\ now_ns in [0,999999999]

/\ @FIX(w,0) /\ w in [1,0x1p52] /\ @FIX(index,0) /\ index in [1,4294967295]
/\ @FIX(e,0) /\ e in [0,4503599627370495]
/\ @FIX(e_ns_,0) /\ e_ns_ in [0,0x1.1p52]
/\ @FIX(over,0) /\ over in [0,1000000000] /\ e_ns_ - rest_ in [0,0x1.1p52]
/\ @FIX(rest_,0) /\ rest_ in [0,4503599627370495] /\ w - rest_ in [1,0x1p52]
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
/\ whole_ in [2,0x1.8000000000001p53]
/\ @FIX(ttl_,0) /\ ttl_ in [0,0x1p34] /\ @FIX(margin_ms,0) /\ margin_ms in [1,60000]

-> (quotient - Quotient) * b in [-0x1.fffffffffffffp-1,0x1.fffffffffffffp-1]
/\ multiple - floor_ab * b in [0,0]
/\ remainder - (a - multiple_) in [0,0]

/\ us_ns - us * 1000 in [0,0] /\ us_ns in [0,999999000]
/\ seconds - now_s * 1e9 in [0,0] /\ @FIX(seconds,9)
/\ limit - (0x1p62 - seconds_) in [0,0]

/\ span - w * 0x1p32 in [0,0]
/\ nearest - (index + 0.5) in [-0x1p-20,0x1p-20]
/\ e_ns - (e + now_ns) in [0,0] /\ e_ns in [0,0x1.1p52]
/\ whole - (e_ns_ - rest_) in [0,0]
/\ over_near - over in [0,0]
/\ i - (index + over) in [0,0]
/\ left - (w - rest_) in [0,0]

/\ apart - (index - stored) in [0,0]
/\ behind - (0x1p32 - apart_) in [0,0] /\ behind in [1,0x1p31]
/\ n_w - N_w in [0,0]
/\ gap_many - (N_w_ - rest_) in [0,0]

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
/\ near_whole - (left_ + w) in [0,0]
/\ gap_left - (gap + w) in [0,0] /\ gap_left in [2,0x1p53]
/\ far_wait - Far_wait in [-1,1]
/\ far_more - Far_wait in [1,3]
/\ ttl_ms - Ttl in [-0x1p-20,0x1p-20]
/\ ttl - (ttl_ + margin_ms) in [0,0]
}

(quotient - Quotient) * b -> ((quotient - Quotient) / Quotient) * a { b <> 0, Quotient <> 0 };
Index - index -> ((times_w - Times_w) / Times_w) * index { w <> 0, Times_w <> 0 };
far_more - Far_wait -> (far_more - (far_wait + 2)) + (far_wait - Far_wait) + 2;
