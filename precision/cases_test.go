package precision

import (
	"math/rand/v2"
	"testing"
)

// Faults that were seen in limiters which keep their state in Redis, each with the
// right answer. Those of arguments and states are tested in emulator, those of
// servers and clients in loader.

func TestWholeBurstAtOneInstant(t *testing.T) {
	// float seconds lose a unit: 1/7 of a minute is not a whole number of anything
	limits := []Call{gcra(7, 60000, 7), gcra(13, 10000, 13), gcra(17, 30000, 17)}
	instants := rand.New(rand.NewPCG(1, 1))
	eachDriver(t, func(t *testing.T, d versioned) {
		starts := 5000
		if _, fast := d.Driver.(*Native); !fast {
			starts = 100
		}
		for _, limit := range limits {
			for range starts {
				k := newKey(t, d, limit)
				now := epoch + instants.Int64N(3600*second)
				now = d.either(now/grid*grid, now)
				for i := range limit.Burst {
					k.want(1, now, 1, limit.Burst-1-i, 0)
				}
				if o := k.call(1, now); o.Status != 0 || o.Remaining != 0 {
					t.Fatalf("call %d at one instant: %+v", limit.Burst+1, o)
				}
				if d.version == 2 {
					continue
				}
				// Off the grid gcra_v1 gives the last unit when the next grid point
				// comes, at most 255 ns later, and says so.
				k = newKey(t, d, limit)
				off := 1 + instants.Int64N(grid-1)
				for i := range limit.Burst - 1 {
					k.want(1, now+off, 1, limit.Burst-1-i, 0)
				}
				k.want(1, now+off, 0, 1, grid-off)
				k.want(1, now+grid, 1, 0, 0)
			}
		}
	})
}

func TestRefillInstant(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, gcra(10, 13000, 1))
		k.want(1, epoch, 1, 0, 0)
		// gcra_v1's remaining is that of the next grid point, which is 1 ns away
		k.want(1, epoch+1300*ms-1, 0, d.either(1, 0), 1)
		k.want(1, epoch+1300*ms, 1, 0, 0)
	})
}

func TestStateAndTTLThatServersPrintWithAnExponent(t *testing.T) {
	// Multiples of 10^8, which 7.0 and 7.2 print as 1e+08 where a number is passed.
	// The drivers refuse a state that is not plain digits, and the ttl is compared.
	eachDriver(t, func(t *testing.T, d versioned) {
		// interval 10^8: the state is a multiple of it
		o := newKey(t, d, gcra(10, 1000, 1)).call(1, epoch)
		if o.State != (State{true, uint64(epoch + 100*ms)}) || !o.ttlIs(100+60000) {
			t.Errorf("%+v", o)
		}
		// ttl 10^8 ms: a reset of 10^8 - 60000 ms
		o = newKey(t, d, gcra(1, 1e8-60000, 1)).call(1, epoch)
		if !o.ttlIs(1e8) {
			t.Errorf("ttl %d", o.TTLMs)
		}
		o = newKey(t, d, fixed(1, 5e7-30000)).call(1, 0)
		if !o.ttlIs(1e8) {
			t.Errorf("ttl %d", o.TTLMs)
		}
	})
}

func TestIntervalThatIsNotWhole(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		for _, burst := range []int64{1, 20} {
			k := newKey(t, d, gcra(3, 1000, burst))
			interval := d.either(333333504, 333333334) // ceil(10^9 / 3), v1 up to the grid
			o := k.want(1, epoch, 1, burst-1, 0)
			if o.ResetAfterNs != interval || !o.ttlIs(334+60000) {
				t.Errorf("burst %d: %+v", burst, o)
			}
			for range burst - 1 {
				k.call(1, epoch)
			}
			k.want(1, epoch, 0, 0, interval)
		}
	})
}

func TestHugeRateAfterTenYears(t *testing.T) {
	const amount, tenYears = 980_000_000, 3652 * 86400 * second
	limit := Call{Amount: amount, PeriodNs: 10 * second, Burst: amount}
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, limit)
		k.want(amount, epoch, 1, 0, 0)
		interval := d.either(grid, 11) // ceil(10^10 / 980000000), v1 up to the grid
		k.want(1, epoch, 0, 0, interval)
		k.want(amount, epoch+tenYears, 1, 0, 0)
		k.want(1, epoch+tenYears, 0, 0, interval)
	})
}

func TestAlternatingClocks(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, gcra(1, 1000, 5))
		admitted := int64(0)
		for range 100 {
			admitted += k.call(1, epoch+10000*ms).Status
			admitted += k.call(1, epoch+5000*ms).Status
		}
		if admitted != 5 {
			t.Errorf("%d admitted, want 5", admitted)
		}
		if o := k.call(1, epoch+16000*ms); o.Status != 1 {
			t.Errorf("at 16 s: %+v", o)
		}
	})
}

func TestTTLIsNeverTooShort(t *testing.T) {
	const margin = 60000
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, gcra(3, 1000, 1)) // a ttl in seconds would be 0
		k.want(1, epoch, 1, 0, 0)
		k.want(1, epoch+ms, 0, 0, d.either(333333504, 333333334)-ms)
		k.want(1, epoch+334*ms, 1, 0, 0)

		k = newKey(t, d, gcra(1000, 1000, 1000))
		for range 1000 {
			k.call(1, epoch)
		}
		if o := k.call(1, epoch); o.Status != 0 || !o.ttlIs(TTLMs(1000*d.either(1000192, ms), margin)) {
			t.Errorf("call 1001: %+v", o)
		}

		k = newKey(t, d, gcra(1, 10000, 1)) // a ttl that forgets the call's own cost is 0
		k.want(1, epoch, 1, 0, 0)
		k.want(1, epoch+ms, 0, 0, 9999*ms)
		if o := k.want(1, epoch+9999*ms, 0, 0, ms); !o.ttlIs(10000 + margin) {
			t.Errorf("%+v", o)
		}
	})
}

func TestSlidingWindowCarriesOver(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, sliding(10, 60000))
		for i := range int64(9) {
			k.want(1, epoch+59000*ms, 1, 9-i, 0)
		}
		k.want(1, epoch+60500*ms, 1, 0, 0)
		if o := k.call(1, epoch+60500*ms); o.Status != 0 {
			t.Errorf("the eleventh: %+v", o)
		}

		k = newKey(t, d, sliding(10, 60000))
		for range 10 {
			k.call(1, 0)
		}
		k.want(1, 1e8*ms, 1, 9, 0)
	})
}

func TestRefillNeverExceedsTheRate(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, gcra(100, 1000, 100))
		admitted := int64(0)
		ask := func(at int64) {
			for k.call(1, epoch+at).Status == 1 {
				admitted++
			}
		}
		for at := int64(0); at <= 2*second; at += 2 * ms { // within a unit's 10 ms too
			ask(at)
			if most := 100 + at/(10*ms); admitted > most {
				t.Fatalf("%d admitted within %d ns, at most %d are right", admitted, at, most)
			}
		}
		admitted = 0
		ask(60 * second) // an idle key gathers no more than its burst
		if admitted != 100 {
			t.Errorf("%d admitted after a minute without a call, want 100", admitted)
		}
	})
}

func TestRefusedIsNotUnfittable(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, gcra(1, 1000, 5))
		k.want(1, epoch, 1, 4, 0)
		k.want(5, epoch, 0, 4, second)
	})
}

func TestHighRatesAndAmountOne(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		for _, amount := range []int64{1500, 2_000_000} {
			k := newKey(t, d, gcra(amount, 1000, 1))
			k.want(1, epoch, 1, 0, 0)
			interval := NewGCRA(amount, second, 1, k.script.Grid()).Interval
			k.want(1, epoch, 0, 0, interval)
			k.want(1, epoch+interval, 1, 0, 0)
		}
		k := newKey(t, d, sliding(1, 1000))
		k.want(1, epoch, 1, 0, 0)
		k.want(1, epoch, 0, 0, 2*second)
	})
}

func TestRefusedCallsAreNotCharged(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		for _, limit := range []Call{gcra(10, 1000, 10), fixed(10, 1000), sliding(10, 1000)} {
			k := newKey(t, d, limit)
			before := k.call(6, epoch)
			after := k.call(5, epoch)
			if before.Status != 1 || after.Status != 0 || after.State != before.State || !after.ttlIs(before.TTLMs) {
				t.Errorf("%+v: %+v then %+v", limit, before, after)
			}
			if o := k.call(4, epoch); o.Status != 1 || o.Remaining != 0 {
				t.Errorf("%+v: cost 4: %+v", limit, o)
			}
			if o := k.call(1, epoch); o.Status != 0 {
				t.Errorf("%+v: cost 1: %+v", limit, o)
			}
		}
	})
}

func TestUnfittable(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, gcra(1, 1000, 5))
		before := k.call(1, epoch)
		o := k.want(6, epoch+10*second, -1, 5, -1)
		if o.ResetAfterNs != 0 || o.State != before.State {
			t.Errorf("%+v", o)
		}
	})
}

func TestCostZeroOnlyLooks(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		for _, limit := range []Call{gcra(10, 1000, 10), fixed(10, 1000), sliding(10, 1000)} {
			k := newKey(t, d, limit)
			if o := k.want(0, epoch, 1, 10, 0); o.State.Exists || o.ResetAfterNs != 0 {
				t.Errorf("fresh key: %+v", o)
			}
			half := k.call(5, epoch)
			if o := k.want(0, epoch+ms/4*4, 1, 5, 0); o.State != half.State || !o.ttlIs(half.TTLMs) {
				t.Errorf("half used: %+v", o)
			}
			k.call(5, epoch)
			k.want(0, epoch, 1, 0, 0)
		}
	})
}

// A limit that changes on a live key: gcra keeps its debt as time, the window its
// counts; remaining stays within the new limit.
func TestLimitChangesOnALiveKey(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, fixed(100, 1000))
		k.call(50, epoch)
		k.limit = fixed(10, 1000)
		k.want(0, epoch, 0, 0, second)
		k.limit = fixed(100, 1000)
		k.want(0, epoch, 1, 50, 0)

		k = newKey(t, d, gcra(10, 1000, 10))
		k.call(10, epoch) // a debt of 1 s
		k.limit = gcra(10, 1000, 5)
		k.want(0, epoch, 0, 0, 500*ms) // 1 s is more than 5 units' worth
		k.want(1, epoch+600*ms, 1, 0, 0)
		k.limit = gcra(100, 1000, 100) // the debt of 0.5 s is now 50 units
		k.want(0, epoch+600*ms, 1, 50, 0)
	})
}

func TestTwentyCallsInOneMicrosecond(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		for _, limit := range []Call{gcra(10, 1000, 10), fixed(10, 1000), sliding(10, 1000)} {
			k := newKey(t, d, limit)
			admitted := int64(0)
			for range 20 {
				admitted += k.call(1, epoch).Status
			}
			if admitted != 10 {
				t.Errorf("%+v: %d admitted, want 10", limit, admitted)
			}
		}
	})
}

// A clock that runs back over a boundary: window_v1 finds no counts, and so admits a
// whole amount again each time; window_v2 counts it as the stored window's start.
func TestWindowClockRunsBackwards(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		for _, limit := range []Call{fixed(10, 1000), sliding(10, 1000)} {
			k := newKey(t, d, limit)
			admitted := int64(0)
			for range 20 {
				for range 10 {
					admitted += k.call(1, epoch+second).Status
					admitted += k.call(1, epoch+second-1).Status
				}
			}
			if want := d.either(400, 10); admitted != want {
				t.Errorf("sliding %v: %d admitted, want %d", limit.Sliding, admitted, want)
			}
		}
		if d.version == 1 {
			return
		}
		// gateways a second apart around a boundary, and a wait by the slower clock
		k := newKey(t, d, sliding(10, 60000))
		for range 10 {
			k.call(1, epoch+60*second)
		}
		k.want(1, epoch+59*second, 0, 0, second+60*second+6*second)
		k.want(1, epoch+126*second-1, 0, 0, 1)
		k.want(1, epoch+126*second, 1, 0, 0)

		// A period that changed leaves an index from which nothing can be told.
		k = newKey(t, d, fixed(10, 60000))
		k.call(10, epoch)
		k.limit = fixed(10, 3600000)
		k.want(1, epoch, 1, 9, 0)
	})
}

func TestRetryOfASlidingWindow(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		k := newKey(t, d, sliding(60, 60000))
		k.call(60, epoch)
		// 48 s left: the 60 of before weigh 48, and 12 fit
		k.want(12, epoch+72*second, 1, 0, 0)
		retry := d.either(48*second, second)
		k.want(1, epoch+72*second, 0, 0, retry)
		k.want(1, epoch+72*second+retry, 1, d.either(47, 0), 0)
	})
}
