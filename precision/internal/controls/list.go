package controls

import "github.com/tatami-rate/tatami/precision"

// The expiry that gcra_v2 sets, in seconds, by a caller's clock and by the server's.
const (
	callerTTL = "expiry_s - now_s + 61)"
	serverTTL = "expiry_s - now_s + 2)"
)

// list is every control. A patch of a ttl leaves the margin out, as the published
// scripts do: the minute that a caller's clock is given would cover the fault.
func list() []control {
	const (
		us     = int64(1e3)
		ms     = int64(1e6)
		second = int64(1e9)
	)
	gcra := func(amount, periodNs, burst int64) precision.Call {
		return precision.Call{Amount: amount, PeriodNs: periodNs, Burst: burst, Cost: 1}
	}
	window := func(amount, periodNs int64, sliding bool) precision.Call {
		return precision.Call{Amount: amount, PeriodNs: periodNs, Sliding: sliding, Cost: 1}
	}
	return []control{
		{
			fault: "TAT rounded to nearest, interval 1100 ns", script: precision.GCRAV2, text: nearest,
			calls:    every(gcra(1, 1100, 64), 10000, 550),
			expected: []string{early, reply, state, difference},
		}, {
			fault: "TAT rounded to nearest, interval 100 ns", script: precision.GCRAV2, text: nearest,
			calls:    every(gcra(1, 100, 64), 10000, 50),
			expected: []string{early, reply, state, difference},
		}, {
			fault: "state through tostring, 14 digits", script: precision.GCRAV2,
			patch: []replacement{{"    local done\n",
				"    tat = string.format('%.0f', tonumber(tostring(tat_s * 1e9 + tat_sub_ns)))\n" +
					"    local done\n"}},
			calls:    every(gcra(7000, second, 10), 10000, 70*us),
			expected: []string{early, reply, state, ttl, difference},
		}, {
			fault: "interval floored", script: precision.GCRAV2,
			patch: []replacement{{"(period_ns + -period_ns % amount) / amount",
				"(period_ns - period_ns % amount) / amount"}},
			calls:    every(gcra(400_000_000, second, 10), 10000, 1),
			expected: []string{early, reply, state, difference},
		}, {
			fault: "ttl floored to seconds", script: precision.GCRAV2,
			patch:    []replacement{{callerTTL, "math.max(math.floor(ahead / 1e9), 1))"}},
			calls:    every(gcra(3, 5*second, 1), 1000, 10*ms),
			expected: []string{early, reply, state, ttl, difference},
		}, {
			fault: "ttl forgets the cost", script: precision.GCRAV2,
			patch:    []replacement{{callerTTL, "math.floor((ahead - cost * interval) / 1e9) + 1)"}},
			calls:    every(gcra(1, 10*second, 1), 1000, 100*ms),
			expected: []string{early, reply, state, ttl, difference},
		}, {
			fault: "burst off by one", script: precision.GCRAV2,
			patch:    []replacement{{"local tau = interval * burst", "local tau = interval * (burst - 1)"}},
			calls:    every(gcra(1, second, 1), 1000, 100*ms),
			expected: []string{late, reply, difference},
		}, {
			fault: "refill floored on each call", script: precision.GCRAV2, text: refill,
			calls:    every(gcra(5, second, 10), 500, 20*ms),
			expected: []string{late, reply, state, ttl, difference},
		}, {
			fault: "% for fmod in the window's index", script: precision.WindowV1,
			patch: []replacement{
				{"local began_ns = fmod(seconds_ns, w)", "local began_ns = seconds_ns % w"},
				{"fmod(cycle_ns, w * 2^32)", "cycle_ns % (w * 2^32)"},
			},
			calls:    every(window(5, 7919, false), 10000, 500),
			expected: []string{early, late, reply, state, difference},
		}, {
			fault: "window's test with rounded products", script: precision.WindowV1,
			patch: []replacement{{"carried = previous * left / w + 0.5", "carried = previous * left / w"},
				{"carried = carried - carried % 1", "carried = math.ceil(carried)"},
				{"  if left > carried * ((w - spare) / previous) + (part - part % previous) / previous then\n" +
					"    carried = carried + 1\n  end\n", ""}},
			calls:    precision.NewFading(precision.WindowV1, 65535, 2_345_678_901_234_567, 500).Calls,
			expected: []string{early, reply, difference},
		}, {
			fault: "refused calls are charged", script: precision.WindowV1,
			patch: []replacement{
				{"  status, retry = 0, gap + left\n", "  status, retry, current = 0, gap + left, math.min(current + cost, 65535)\n"},
				{"if status == 1 and cost > 0 then", "if status >= 0 and cost > 0 then"},
			},
			calls:    every(window(10, second, true), 1000, 20*ms),
			expected: []string{late, reply, state, ttl, difference},
		}, {
			fault: "retry rounded down to ms", script: precision.GCRAV2,
			patch:    []replacement{{"  status = 0\n", "  status, retry = 0, retry - retry % 1e6\n"}},
			calls:    every(gcra(7, second, 7), 1000, 10*ms),
			expected: []string{reply, difference},
		}, {
			fault: "a clock behind resets the window", script: precision.WindowV1, text: resets,
			calls:    straddling(window(10, second, false), 500),
			expected: []string{early, reply, state, ttl, difference},
		}, {
			fault: "a window's key without its period", script: precision.WindowV1,
			patch:    []replacement{{"if ((w3 * 256 + w2) * 256 + w1) * 256 + w0 ~= w % 2^32 then", "if false then"}},
			calls:    turns(window(100, second, false), window(5, 60*second, false), 500, 0),
			expected: []string{reply, state, ttl, difference},
		}, {
			fault: "a window's key without its period, rolling deploy", script: precision.WindowV1,
			patch:    []replacement{{"if ((w3 * 256 + w2) * 256 + w1) * 256 + w0 ~= w % 2^32 then", "if false then"}},
			calls:    turns(window(100, 60*second, false), window(200, 120*second, false), 6000, 50*ms),
			expected: []string{reply, state, ttl, difference},
		}, {
			fault: "expiry kept at every write", script: precision.GCRAV2,
			patch:    []replacement{{"elseif expiry_s ~= was_s then", "elseif not was_s then"}},
			calls:    byServer(every(gcra(1, second, 5), 1000, 100*ms)),
			expected: []string{early, reply, state, ttl, difference},
		}, {
			fault: "expiry without the 2 s", script: precision.GCRAV2,
			patch: []replacement{{serverTTL, "expiry_s - now_s)"},
				{"if expiry_s == now_s + 1 then\n          ttl_s = '3'\n        elseif", "if"}},
			calls:    byServer(every(gcra(2, 3*second, 1), 1000, 100*ms)),
			expected: []string{early, reply, state, ttl, difference},
		}, {
			fault: "a foreign number is taken for a TAT", script: precision.GCRAV2,
			patch:    []replacement{{"    shortest = 19\n", "    shortest = 1\n"}},
			calls:    foreign(gcra(10, second, 10), 100),
			expected: []string{late, reply, state, ttl, difference},
		}, {
			fault: "credit is dropped by a write", script: precision.GCRAV2,
			patch:    []replacement{{"      tat = tat .. ' ' .. credit .. ' ' .. last\n", ""}},
			calls:    credited(every(gcra(10, second, 10), 100, 10*ms), 500*ms),
			expected: []string{state, difference},
		}, {
			fault: "credit is written as a double", script: precision.GCRAV2,
			patch: []replacement{{"      tat = tat .. ' ' .. credit .. ' ' .. last\n",
				"      tat = tat .. ' ' .. string.format('%.0f', tonumber(credit)) .. ' ' .. last\n"}},
			calls:    credited(every(gcra(10, second, 10), 100, 10*ms), 500*ms),
			expected: []string{state, difference},
		}, {
			fault: "the last TAT follows each write", script: precision.GCRAV2,
			patch:    []replacement{{"(last_s - tat_s) * 1e9 + (last_sub_ns - tat_sub_ns) > 0", "false"}},
			calls:    credited(every(gcra(10, second, 10), 100, 10*ms), 5*second),
			expected: []string{state, ttl, difference},
		}, {
			fault: "the last TAT stays", script: precision.GCRAV2,
			patch:    []replacement{{"(last_s - tat_s) * 1e9 + (last_sub_ns - tat_sub_ns) > 0", "true"}},
			calls:    credited(every(gcra(10, second, 10), 100, 10*ms), 0),
			expected: []string{state, ttl, difference},
		}, {
			fault: "a key with credit expires by its TAT", script: precision.GCRAV2,
			patch:    []replacement{{"        expiry_s = last_s\n", ""}},
			calls:    credited(every(gcra(10, second, 10), 100, 10*ms), 5*second),
			expected: []string{ttl, difference},
		}, {
			fault: "a key with credit keeps its expiry by its TAT", script: precision.GCRAV2,
			patch:    []replacement{{"      was_s = last_s\n", ""}},
			calls:    credited(byServer(every(gcra(10, second, 10), 100, 10*ms)), 5*second),
			expected: []string{ttl, difference},
		}, {
			fault: "interval rounded down to the grid", script: precision.GCRAV1,
			patch:    []replacement{{"interval = interval + -interval % 256", "interval = math.max(interval - interval % 256, 256)"}},
			calls:    every(gcra(1, 1100, 64), 10000, 550),
			expected: []string{early, reply, state, difference},
		}, {
			fault: "a rested key's clock rounded down to the grid", script: precision.GCRAV1,
			patch:    []replacement{{"      ahead = up --", "      ahead = 0 --"}},
			calls:    every(gcra(1, 1024, 1), 10000, 1001),
			expected: []string{early, reply, state, difference},
		}, {
			fault: "burst off by one, in one double", script: precision.GCRAV1,
			patch:    []replacement{{"local tau = interval * burst", "local tau = interval * (burst - 1)"}},
			calls:    every(gcra(1, second, 1), 1000, 100*ms),
			expected: []string{late, reply, difference},
		}, {
			fault: "wait counted from the grid point before the clock", script: precision.GCRAV1,
			patch:    []replacement{{"    retry = retry - below\n", ""}},
			calls:    every(gcra(7, second, 7), 1000, 10*ms+1),
			expected: []string{reply, difference},
		}, {
			fault: "ttl of one double floored to seconds", script: precision.GCRAV1,
			patch:    []replacement{{"ahead_s + 61)", "math.max(ahead_s, 1))"}},
			calls:    every(gcra(3, 5*second, 1), 1000, 10*ms),
			expected: []string{early, reply, state, ttl, difference},
		}, {
			fault: "expiry of one double kept at every write", script: precision.GCRAV1,
			patch:    []replacement{{"if tat_s == stored_s and time then", "if stored_s and time then"}},
			calls:    byServer(every(gcra(1, second, 5), 1000, 100*ms)),
			expected: []string{early, reply, state, ttl, difference},
		}, {
			fault: "a window's expiry without its margin", script: precision.WindowV1,
			patch:    []replacement{{"local margin_s = 60\n", "local margin_s = 0\n"}},
			calls:    every(window(10, second, true), 1000, 20*ms),
			expected: []string{ttl, difference},
		}, {
			fault: "a window's counts live for its own window", script: precision.WindowV1,
			patch:    []replacement{{"local margin_s = 60\n", "local margin_s = 0\n    end_ns = gap + left\n"}},
			calls:    every(window(10, 100*second, true), 1000, second),
			expected: []string{early, reply, state, ttl, difference},
		},
		{
			fault: "the usual refund: the TAT less units x interval", script: precision.LimitsV1,
			patch: []replacement{
				{"        if c > worth then\n          c = worth\n        end\n        if c > 0 and worth <= ahead then",
					"        if c > 0 and c <= ahead then"},
				{"worth < 2^53 and since >= 0 and since < 2^53", "true"}},
			limits:   refunded(),
			expected: []string{early, reply, state, ttl, difference},
		}, {
			fault: "interval floored, of several limits", script: precision.LimitsV1,
			patch: []replacement{{"(period_ns + -period_ns % amount) / amount",
				"(period_ns - period_ns % amount) / amount"}},
			limits:   pairs(gcra(400_000_000, second, 10), window(65535, second, false), 10000, 1),
			expected: []string{early, reply, state, difference},
		}, {
			fault: "burst off by one, of several limits", script: precision.LimitsV1,
			patch:    []replacement{{"local tau = interval * burst", "local tau = interval * (burst - 1)"}},
			limits:   pairs(gcra(1, second, 1), window(60, 60*second, true), 1000, 100*ms),
			expected: []string{late, reply, difference},
		}, {
			fault: "the limits that fit are charged for a call that is refused", script: precision.LimitsV1,
			patch: []replacement{{"if text and reply[1] < 1 and ARGV[6 * at + 1] == '' then", "if false then"},
				{"        if cost > 0 and reply[1] == 1 then\n          ahead", "        if cost > 0 then\n          ahead"},
				{"        if cost > 0 and reply[1] == 1 then\n          current", "        if cost > 0 then\n          current"}},
			limits:   pairs(gcra(100, 60*second, 100), window(5, second, false), 1000, 20*ms),
			expected: []string{late, reply, state, ttl, difference},
		}, {
			fault: "the wait of the last limit", script: precision.LimitsV1,
			patch:    []replacement{{"reply[2] = math.max(reply[2], retry)", "reply[2] = retry"}},
			limits:   pairs(gcra(5, 60*second, 5), window(5, second, false), 1000, 20*ms),
			expected: []string{reply, difference},
		}, {
			fault: "a settlement is dropped with the call that is refused", script: precision.LimitsV1,
			patch: []replacement{{"if text and reply[1] < 1 and ARGV[6 * at + 1] == '' then", "if text and reply[1] < 1 then"},
				{"answer[2] + tonumber(ARGV[6 * at])", "answer[2] + math.max(tonumber(ARGV[6 * at]), 0)"}},
			limits:   settledBesideARefusal(),
			expected: []string{late, reply, state, difference},
		}, {
			fault: "expiry of several limits kept at every write", script: precision.LimitsV1,
			patch:    []replacement{{"elseif expiry_s ~= was_s then", "elseif not was_s then"}},
			limits:   withServer(pairs(gcra(1, second, 5), window(60, 60*second, true), 1000, 100*ms), true),
			expected: []string{early, reply, state, ttl, difference},
		}, {
			fault: "a key that was given back to expires by its TAT", script: precision.LimitsV1,
			patch:    []replacement{{"          expiry_s = last_s\n", "          expiry_s = tat_s\n"}},
			limits:   refunded(),
			expected: []string{ttl, difference},
		}, {
			fault: "the receipt without its credit", script: precision.LimitsV1,
			patch:    []replacement{{"          receipt = text .. ' ' .. credit\n", "          receipt = text\n"}},
			limits:   refunded(),
			expected: []string{reply, difference},
		},
	}
}
