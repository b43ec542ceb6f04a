package precision

import (
	"math"
	"testing"
)

// The figures that are published of these algorithms, each counted on the scripts.

// arrivals calls once at each instant, in ns after epoch, and returns how many were
// admitted and the most of them in any rolling second.
func arrivals(k *key, instants []int64) (admitted, peak int) {
	k.t.Helper()
	var times []int64
	for _, at := range instants {
		if k.call(1, epoch+at).Status == 1 {
			times = append(times, at)
		}
	}
	from := 0
	for i, at := range times {
		for times[from] <= at-second {
			from++
		}
		peak = max(peak, i-from+1)
	}
	return len(times), peak
}

// every returns n instants, gapMs apart, the first at fromMs.
func every(n int, fromMs, gapMs int64) []int64 {
	instants := make([]int64, n)
	for i := range instants {
		instants[i] = (fromMs + int64(i)*gapMs) * ms
	}
	return instants
}

func TestFirstMinute(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, gcra(300, 60000, 60))
		for i := range int64(60) {
			k.want(1, epoch, 1, 59-i, 0)
		}
		k.want(1, epoch, 0, 0, 200*ms)
		admitted := 60
		for at := 200 * ms; at < 60*second; at += 200 * ms {
			// gcra_v1's remaining is that of the next grid point, which is 1 ns away
			k.want(1, epoch+at-1, 0, d.either(1, 0), 1)
			k.want(1, epoch+at, 1, 0, 0)
			admitted++
		}
		if admitted != 359 {
			t.Errorf("%d admitted in the first minute, want 359", admitted)
		}
	})
}

func TestBurstOfTheWholeAmount(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, gcra(300, 60000, 300))
		for i := range int64(300) {
			k.want(1, epoch, 1, 299-i, 0)
		}
		k.want(1, epoch, 0, 0, 200*ms)
	})
}

func TestFixedWindowOfEightSeconds(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, fixed(10, 8000))
		admitted := int64(0)
		for _, call := range []struct{ at, status int64 }{
			{0, 1}, {1, 1}, {2, 1}, {4, 0}, {8, 1}, {9, 1}, {10, 1},
		} {
			o := k.call(3, epoch+call.at*second)
			if o.Status != call.status {
				t.Errorf("at %d s: status %d, want %d", call.at, o.Status, call.status)
			}
			admitted += 3 * o.Status
		}
		if admitted != 18 {
			t.Errorf("%d admitted, want 18", admitted)
		}
	})
}

func TestSlidingWeighsThePreviousWindow(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		for _, mode := range []struct {
			limit  Call
			status int64
		}{{sliding(10, 8000), 0}, {fixed(10, 8000), 1}} {
			k := newKey(t, d, mode.limit)
			k.call(6, epoch)
			// 6 more in the next window fit from 2/3 of it on when sliding
			k.limit.Sliding = false
			k.call(6, epoch+8*second)
			k.limit = mode.limit
			if o := k.call(3, epoch+14*second); o.Status != mode.status {
				t.Errorf("sliding %v: status %d, want %d", mode.limit.Sliding, o.Status, mode.status)
			}
		}
	})
}

func TestShapesOfTenASecond(t *testing.T) {
	limits := map[string]Call{
		"fixed":         fixed(10, 1000),
		"sliding":       sliding(10, 1000),
		"gcra":          gcra(10, 1000, 10),
		"gcra, burst 1": gcra(10, 1000, 1),
	}
	// arrival i of 30 a second, rounded to whole ms
	thirty := make([]int64, 300)
	for i := range thirty {
		thirty[i] = int64(math.Round(float64(i)*1000/30)) * ms
	}
	type figure struct{ admitted, peak int } // a peak of 0 is not published
	shapes := []struct {
		name     string
		instants []int64
		want     map[string]figure
	}{
		{"ten before a second's edge and ten after it",
			append(every(10, 900, 10), every(10, 1000, 10)...),
			map[string]figure{"fixed": {20, 20}, "sliding": {10, 0}, "gcra": {11, 0}}},
		{"silence to 900 ms, then 500 a second for two seconds",
			every(1000, 900, 2),
			map[string]figure{"fixed": {30, 20}, "sliding": {28, 18}, "gcra": {29, 19}, "gcra, burst 1": {20, 10}}},
		{"30 a second for ten seconds", thirty,
			map[string]figure{"fixed": {100, 0}, "sliding": {91, 0}, "gcra": {109, 19}}},
		{"10 a second for ten seconds", every(100, 0, 100),
			map[string]figure{"fixed": {100, 0}, "sliding": {91, 0}, "gcra": {100, 0}}},
	}
	eachDriver(t, func(t *testing.T, d versioned) {
		for _, shape := range shapes {
			for name, want := range shape.want {
				admitted, peak := arrivals(newKey(t, d, limits[name]), shape.instants)
				if admitted != want.admitted || want.peak != 0 && peak != want.peak {
					t.Errorf("%s: %s: %d admitted, peak %d, want %d and %d",
						shape.name, name, admitted, peak, want.admitted, want.peak)
				}
			}
		}
	})
}

func TestFastPollerIsNotStarved(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		admitted, _ := arrivals(newKey(t, d, gcra(5, 1000, 10)), every(500, 0, 20))
		if admitted != 59 {
			t.Errorf("%d admitted, want 59", admitted)
		}
	})
}
