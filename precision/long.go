package precision

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// limitsPart is what part of the decisions of Long limits_v1 makes: each is of several keys.
const limitsPart = 10

// Long judges native decisions by the billion, on all processors: saturated streams of
// gcra_v1 with every residue of interval mod 256, and traces 0, 1, 2, ... of each script.
// The scripts of one key share the decisions, those of limits_v1 come on top. Besides the
// rows it returns a hash of every outcome, which depends on the seed and the number of
// decisions alone: two machines that agree on it have made the same decisions.
func Long(seed uint64, decisions int, made func(n int)) ([]Row, uint64) {
	var rows []Row
	hash := uint64(0)
	for _, s := range Scripts {
		began := time.Now()
		load := Load{Decisions: decisions / (len(Scripts) - 1)}
		switch s.Script {
		case GCRAV1:
			load.Streams = len(saturatedResidues)
		case LimitsV1:
			load.Decisions = decisions / limitsPart
		}
		row := Row{Script: s.Script, Driver: NewNative().Name(), BoundNs: s.BoundNs}
		streams, traces := int64(load.Streams), int64(load.traces())
		var next atomic.Int64
		var mu sync.Mutex
		var workers sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			workers.Go(func() {
				w := longWorker{script: s.Script, seed: seed, streams: int(streams)}
				for index := next.Add(1) - 1; index < traces; index = next.Add(1) - 1 {
					calls, tally, h := w.play(int(index))
					mu.Lock()
					row.Tally.Add(&tally)
					row.Asked += int64(calls)
					hash += h // in any order
					mu.Unlock()
					made(calls)
				}
			})
		}
		workers.Wait()
		row.Asked = max(row.Asked, int64(load.decisions()))
		row.Playing = time.Since(began)
		rows = append(rows, row)
	}
	return rows, hash
}

// longWorker plays traces in the room of the one before.
type longWorker struct {
	script  Script
	seed    uint64
	streams int // come first
	trace   Trace
	limits  LimitsTrace
}

func (w *longWorker) play(index int) (calls int, tally Tally, hash uint64) {
	if w.script == LimitsV1 {
		w.limits.remake(w.seed, index)
		return len(w.limits.Calls), JudgeLimits(&w.limits, w.limits.Native), w.limits.hash()
	}
	if index < w.streams {
		w.trace.saturate(w.script, saturatedResidues[index])
	} else {
		w.trace.remake(w.script, w.seed, index-w.streams)
	}
	return len(w.trace.Calls), Judge(&w.trace, w.trace.Native), w.trace.hash()
}

// hash64 is a hash of FNV-1a, of numbers in place of bytes.
type hash64 uint64

const basis hash64 = 14695981039346656037

func (h *hash64) add(numbers ...uint64) {
	for _, n := range numbers {
		*h = (*h ^ hash64(n)) * 1099511628211
	}
}

func (h *hash64) outcome(o *Outcome) {
	h.add(uint64(o.Status), uint64(o.Remaining), uint64(o.RetryAfterNs),
		uint64(o.ResetAfterNs), o.State.Value, uint64(o.State.PeriodNs),
		uint64(len(o.State.Credit)), o.State.Last, uint64(o.TTLMs), uint64(len(o.Err)))
}

// hash is that of each outcome.
func (t *Trace) hash() uint64 {
	h := basis
	for i := range t.Native {
		h.outcome(&t.Native[i])
	}
	return uint64(h)
}

// hash is that of each outcome, of each key with its credit and its receipt.
func (t *LimitsTrace) hash() uint64 {
	h := basis
	for i := range t.Native {
		o := &t.Native[i]
		h.add(uint64(o.Status), uint64(o.RetryAfterNs), uint64(len(o.Err)))
		for n := range o.Keys {
			k := &o.Keys[n]
			h.outcome(&k.Outcome)
			h.text(k.State.Credit)
			h.text(k.Receipt)
		}
	}
	return uint64(h)
}

func (h *hash64) text(text string) {
	for i := range len(text) {
		h.add(uint64(text[i]))
	}
}
