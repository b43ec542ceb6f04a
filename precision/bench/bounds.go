package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// boundServer is the server whose instructions have bounds in numbers.
const boundServer = "redis 7.0.15"

// boundSeeds is how many servers count the instructions of a row that has a bound. A count
// varies by 150 either way, as a server hashes by a seed of its own and goes through
// expired keys by its clock; the mean of 4 by half of that.
const boundSeeds = 4

// seeds is how many servers count the instructions of a row.
func (r *row) seeds() int {
	if r.clock != serverClock || r.counts == nothing || r.counts == firstWindow || r.name == "throttled v2" {
		return 1
	}
	return boundSeeds
}

// bound is a figure beside what it has to be.
type bound struct {
	what      string
	got, want float64
	atLeast   bool
}

func (b bound) holds() bool {
	if b.atLeast {
		return b.got >= b.want
	}
	return b.got <= b.want
}

func (b bound) String() string {
	sign, verdict := "at most", "holds"
	if b.atLeast {
		sign = "at least"
	}
	if !b.holds() {
		verdict = "DOES NOT HOLD"
	}
	return fmt.Sprintf("%s: %s, %s %s: %s", b.what, number(b.got), sign, number(b.want), verdict)
}

// number is whole from 100 on, and has two digits after the point below.
func number(value float64) string {
	if value >= 100 {
		return fmt.Sprintf("%.0f", value)
	}
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64)
}

// bounds are those whose figures were measured, on a server of that name. allow and each
// are the calls a second of the loader, one by one and a hundred together.
func bounds(server string, rows []*row, allow, each float64) []bound {
	find := func(label string) *row {
		return rows[slices.IndexFunc(rows, func(r *row) bool { return r.label() == label && r.clock == serverClock })]
	}
	v2, peer := find("gcra_v2"), find("redis_rate v10")
	fixed, sliding := find("window_v1 fixed"), find("window_v1 sliding")
	var all []bound
	if server == boundServer {
		all = []bound{
			{"gcra_v2 instructions, new key", v2.Instructions[fresh], 61_500, false},
			{"gcra_v2 instructions, busy key", v2.Instructions[busy], 62_500, false},
			{"gcra_v2 instructions, refused", v2.Instructions[refused], 50_300, false},
			{"window_v1 fixed instructions, new key", fixed.Instructions[fresh], 61_500, false},
			{"window_v1 fixed instructions, busy key", fixed.Instructions[busy], 58_500, false},
			{"window_v1 fixed instructions, refused", fixed.Instructions[refused], 49_500, false},
			{"window_v1 sliding instructions, new key", sliding.Instructions[fresh], 61_500, false},
			{"window_v1 sliding instructions, busy key", sliding.Instructions[busy], 58_500, false},
			{"window_v1 sliding instructions, refused", sliding.Instructions[refused], 49_500, false},
			{"gcra_v1 instructions over gcra_v2's, new key",
				ratio(find("gcra_v1").Instructions[fresh], v2.Instructions[fresh]), 1.03, false},
		}
		one := find("limits_v1, asks: 1").Instructions[fresh]
		for _, b := range []struct {
			what  string
			count float64
			most  float64
		}{
			{"limits_v1, 1 ask", one, 1.30},
			{"limits_v1, 2 asks", find("limits_v1, asks: 2").Instructions[fresh], 2.1},
			{"limits_v1, 8 asks", find("limits_v1, asks: 8").Instructions[fresh], 6.8},
			{"limits_v1, give-back", find("limits_v1, ask and give-back").Instructions[fresh] - one, 1.55},
		} {
			all = append(all, bound{b.what + ": instructions over gcra_v2's, new key", ratio(b.count, v2.Instructions[fresh]), b.most, false})
		}
	}
	all = append(all, []bound{
		{"gcra_v2 instructions beside redis_rate's, new key", v2.Instructions[fresh], peer.Instructions[fresh], false},
		{"gcra_v2 instructions beside redis_rate's, busy key", v2.Instructions[busy], peer.Instructions[busy], false},
		{"gcra_v2 instructions beside redis_rate's, refused", v2.Instructions[refused], peer.Instructions[refused], false},
		{"gcra_v2 client ns over redis_rate's", ratio(v2.Admitted.Client, peer.Admitted.Client), 1, false},
		{"gcra_v2 client allocations over redis_rate's", ratio(v2.Admitted.Allocations, peer.Admitted.Allocations), 1, false},
		{"gcra_v2 bytes a key", v2.Bytes, 56, false},
		{"window_v1 bytes a key", sliding.Bytes, 72, false},
		{"AllowEach of 100, calls a second over Allow's", ratio(each, allow), 8, true},
	}...)
	all = slices.DeleteFunc(all, func(b bound) bool { return b.got == 0 })
	if wrong, judged := wrongOfExact(rows); judged {
		all = append(all, bound{"wrong decisions of gcra_v2, window_v1 and limits_v1, early ones of gcra_v1", float64(wrong), 0, false})
	}
	return all
}

// broken is an error that names the bounds which do not hold, or nil.
func broken(bounds []bound) error {
	var errs []error
	for _, b := range bounds {
		if !b.holds() {
			errs = append(errs, errors.New(b.String()))
		}
	}
	return errors.Join(errs...)
}

// wrongOfExact counts the decisions that the scripts may not get wrong, when they were
// judged. gcra_v1 may be late, never early.
func wrongOfExact(rows []*row) (wrong int, judged bool) {
	for _, r := range rows {
		if r.Wrong == nil {
			continue
		}
		name, _, _ := strings.Cut(r.name, ",")
		switch name {
		case "gcra_v1":
			wrong, judged = wrong+r.Wrong.Early, true
		case "gcra_v2", "window_v1", "limits_v1":
			wrong, judged = wrong+r.Wrong.Early+r.Wrong.Late, true
		}
	}
	return wrong, judged
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
