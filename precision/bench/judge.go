package main

import (
	"slices"

	"github.com/tatami-rate/tatami/precision"
)

// judge holds decisions against exact integers. A decision is only known to have
// been made between two instants, in ns: it is wrong when it is wrong at every
// instant between them.
type judge interface {
	// call takes a decision on cost units at a key, and tells whether it is wrong.
	call(key string, l limit, cost, fromNs, toNs int64, admitted bool) (wrong bool)
}

func newJudge(counts string, originNs int64) judge {
	switch counts {
	case gcra:
		return &gcraJudge{originNs, map[string]tats{}}
	case firstWindow:
		return firstWindowJudge{}
	default:
		return &windowJudge{counts == slidingWindow, map[string][]precision.Counts{}}
	}
}

// gcraJudge counts time from originNs in units of 1/amount ns, in which the interval
// is whole: it is the period. Who rounds the interval up to a whole ns is right too:
// an admission is held against the exact interval, a refusal against that one.
type gcraJudge struct {
	originNs int64
	keys     map[string]tats
}

// tats bound the theoretical arrival time: the earliest with the exact interval, the
// latest with the one rounded up.
type tats struct {
	earliest, latest int64
}

func (j *gcraJudge) call(key string, l limit, cost, fromNs, toNs int64, admitted bool) bool {
	tat := j.keys[key]
	exact := precision.NewGCRA(1, int64(l.period), l.burst, 1)
	ns := precision.NewGCRA(l.amount, int64(l.period), l.burst, 1)
	up := precision.GCRA{Interval: ns.Interval * l.amount, Burst: l.burst}
	from, to := (fromNs-j.originNs)*l.amount, (toNs-j.originNs)*l.amount
	if !admitted {
		return from >= up.FirstNs(tat.latest, cost)
	}
	wrong := to < exact.FirstNs(tat.earliest, cost)
	j.keys[key] = tats{max(tat.earliest, from) + cost*exact.Interval, max(tat.latest, to) + cost*up.Interval}
	return wrong
}

// windowJudge keeps every state that a key may be in.
type windowJudge struct {
	sliding bool
	keys    map[string][]precision.Counts
}

func (j *windowJudge) call(key string, l limit, cost, fromNs, toNs int64, admitted bool) bool {
	states := j.keys[key]
	if states == nil {
		states = []precision.Counts{{}}
	}
	window := precision.Window{Amount: l.amount, PeriodNs: int64(l.period), Sliding: j.sliding}
	// Inside a window a call fits the better the later it comes, so the ends decide.
	instants := []int64{fromNs, toNs}
	for start := (fromNs/window.PeriodNs + 1) * window.PeriodNs; start <= toNs; start += window.PeriodNs {
		instants = append(instants, start-1, start)
	}
	var agreeing, all []precision.Counts
	add := func(to *[]precision.Counts, state precision.Counts) {
		if !slices.Contains(*to, state) {
			*to = append(*to, state)
		}
	}
	for _, stored := range states {
		for _, now := range instants {
			state, left, _ := window.At(stored, now) // no clock runs backwards here
			fits := window.Fits(state, left, cost)
			if admitted {
				state.Current += uint16(cost)
			} else {
				state = stored
			}
			if fits == admitted {
				add(&agreeing, state)
			}
			add(&all, state)
		}
	}
	if len(agreeing) == 0 {
		j.keys[key] = all
		return true
	}
	j.keys[key] = agreeing
	return false
}

// firstWindowJudge keeps every state that a key may be in, for windows that start
// with the first call.
type firstWindowJudge map[string][]firstWindowState

type firstWindowState struct {
	count                int64
	startFromNs, startTo int64
}

func (j firstWindowJudge) call(key string, l limit, cost, fromNs, toNs int64, admitted bool) bool {
	states := j[key]
	if states == nil {
		states = []firstWindowState{{0, fromNs, toNs}}
	}
	period := int64(l.period)
	var agreeing, all []firstWindowState
	for _, stored := range states {
		var possible []firstWindowState
		if fromNs < stored.startTo+period {
			possible = append(possible, stored) // still in this window
		}
		if toNs >= stored.startFromNs+period {
			possible = append(possible, firstWindowState{0, fromNs, toNs}) // a new one
		}
		for _, state := range possible {
			fits := state.count+cost <= l.amount
			if admitted {
				state.count += cost
			} else if state.count == 0 {
				state = stored // a refused call starts no window
			}
			if fits == admitted && !slices.Contains(agreeing, state) {
				agreeing = append(agreeing, state)
			}
			if !slices.Contains(all, state) {
				all = append(all, state)
			}
		}
	}
	if len(agreeing) == 0 {
		j[key] = all
		return true
	}
	j[key] = agreeing
	return false
}
