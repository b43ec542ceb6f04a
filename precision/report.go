package precision

// This file measures what the report draws, beside what internal/skew does.

// Lateness plays traces of a gcra script on the native port and counts, for each number
// of ns, the refused calls whose wait ends that much after the first instant of exact
// GCRA on the script's own interval, fed with the same admissions. A key that is as good
// as new only after 2^53 ns is left out: its waits are not given to the nanosecond. outside counts those below 0
// or above 255.
func Lateness(script Script, seed uint64, traces int) (counts [grid]int64, outside int64) {
	for index := range traces {
		t := NewTrace(script, seed, index)
		fed := NewFed(script, script.Grid())
		for i := range t.Calls {
			c, o := &t.Calls[i], &t.Native[i]
			fed.Meet(c)
			switch {
			case o.Status == 1:
				fed.Admit(c)
			case o.Status == 0 && o.Err == "" && o.ResetAfterNs < 1<<53:
				late := c.NowNs + o.RetryAfterNs - fed.GCRA(c).FirstNs(fed.tat, c.Cost)
				if late < 0 || late >= grid {
					outside++
				} else {
					counts[late]++
				}
			}
		}
	}
	return counts, outside
}

// Saturation is how many units have been admitted of a stream that is asked every 10 ns,
// at the instants AtNs after its first call.
type Saturation struct {
	AtNs []int64
	// Exact is what exact GCRA admits, Nearest what it admits with its TAT in one double,
	// as often published, and V1 and V2 what the scripts do.
	Exact, Nearest, V1, V2 []int64
}

// NewSaturation saturates a limit of one unit in 1100 ns, burst 64, for 1 ms.
func NewSaturation() Saturation {
	const start, step, length, sample = 1_780_000_000_000_000_000, 10, 1_000_000, 5000
	c := Call{Amount: 1, PeriodNs: 1100, Burst: 64, Cost: 1}
	exact := NewGCRA(c.Amount, c.PeriodNs, c.Burst, 1)
	v1, v2 := &nativeKey{}, &nativeKey{}
	var tat, sumExact, sumNearest, sumV1, sumV2 int64
	nearest := 0.0
	var s Saturation
	for at := int64(0); at <= length; at += step {
		c.NowNs = start + at
		var v Verdict
		if v, tat = exact.Call(tat, 1, c.NowNs); v.Status == 1 {
			sumExact++
		}
		// doubles are 256 apart here: 1100 rounds to 1024 each time it is added
		if next := max(nearest, float64(c.NowNs)) + float64(exact.Interval); next-float64(c.NowNs) <= float64(exact.Tau()) {
			nearest = next
			sumNearest++
		}
		sumV1 += v1.call(GCRAV1, &c).Status
		sumV2 += v2.call(GCRAV2, &c).Status
		if at%sample == 0 {
			s.AtNs = append(s.AtNs, at)
			s.Exact = append(s.Exact, sumExact)
			s.Nearest = append(s.Nearest, sumNearest)
			s.V1 = append(s.V1, sumV1)
			s.V2 = append(s.V2, sumV2)
		}
	}
	return s
}
