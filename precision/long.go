package precision

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Long judges native decisions by the billion, on all processors: saturated streams of
// gcra_v1 with every residue of interval mod 256, and traces 0, 1, 2, ... of each script. Besides the rows it returns a hash of every outcome, which depends
// on the seed and the number of decisions alone: two machines that agree on it have
// made the same decisions.
func Long(seed uint64, decisions int, made func(n int)) ([]Row, uint64) {
	var rows []Row
	hash := uint64(0)
	for _, s := range Scripts {
		began := time.Now()
		load := Load{Decisions: decisions / len(Scripts)}
		if s.Script == GCRAV1 {
			load.Streams = len(saturatedResidues)
		}
		row := Row{Script: s.Script, Driver: NewNative().Name(), BoundNs: s.BoundNs}
		streams, traces := int64(load.Streams), int64(load.traces())
		var next atomic.Int64
		var mu sync.Mutex
		var workers sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			workers.Go(func() {
				t := &Trace{}
				for index := next.Add(1) - 1; index < traces; index = next.Add(1) - 1 {
					if index < streams {
						t.saturate(s.Script, saturatedResidues[index])
					} else {
						t.remake(s.Script, seed, int(index-streams))
					}
					tally := Judge(t, t.Native)
					h := t.hash()
					mu.Lock()
					row.Tally.Add(&tally)
					row.Asked += int64(len(t.Calls))
					hash += h // in any order
					mu.Unlock()
					made(len(t.Calls))
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

// hash is that of FNV-1a, of the numbers of each outcome in place of bytes.
func (t *Trace) hash() uint64 {
	h := uint64(14695981039346656037)
	for i := range t.Native {
		o := &t.Native[i]
		for _, n := range [...]uint64{uint64(o.Status), uint64(o.Remaining), uint64(o.RetryAfterNs),
			uint64(o.ResetAfterNs), o.State.Value, uint64(o.State.PeriodNs),
			uint64(len(o.State.Credit)), o.State.Last, uint64(o.TTLMs), uint64(len(o.Err))} {
			h = (h ^ n) * 1099511628211
		}
	}
	return h
}
