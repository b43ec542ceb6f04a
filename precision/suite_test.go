package precision

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// singles are the scripts of one key.
var singles = Scripts[:len(Scripts)-1]

// canned is the native port under another name, with answers that are changed.
type canned struct {
	*Native
	change func(script Script, key string, calls []Call, outcomes []Outcome)
}

func (canned) Name() string { return "canned" }

func (d canned) Play(script Script, key string, calls []Call, outcomes []Outcome) error {
	if err := d.Native.Play(script, key, calls, outcomes); err != nil {
		return err
	}
	d.change(script, key, calls, outcomes)
	return nil
}

// PlayLimits changes what a call answers as a whole, and what it does to its first key.
func (d canned) PlayLimits(key string, calls []LimitsCall, outcomes []LimitsOutcome) error {
	if err := d.Native.PlayLimits(key, calls, outcomes); err != nil {
		return err
	}
	first := make([]Call, len(calls))
	seen := make([]Outcome, len(calls))
	for i, o := range outcomes {
		first[i], seen[i] = *calls[i].clock(), o.Keys[0].Outcome
		seen[i].Err, seen[i].Status, seen[i].RetryAfterNs = o.Err, o.Status, o.RetryAfterNs
	}
	d.change(LimitsV1, key, first, seen)
	for i, s := range seen {
		o := &outcomes[i]
		k := &o.Keys[0].Outcome
		o.Err, o.Status, o.RetryAfterNs = s.Err, s.Status, s.RetryAfterNs
		k.Remaining, k.ResetAfterNs, k.State, k.TTLMs = s.Remaining, s.ResetAfterNs, s.State, s.TTLMs
	}
	return nil
}

// small is a run of one trace of each style.
func small(made func(int)) Options {
	return Options{Seed: 1, Made: made, Load: func(Driver, Script) Load {
		return Load{Decisions: traceCalls * len(gcraStyles[GCRAV2])}
	}}
}

// columns are what a fault of each kind counts in, and the changes that make it.
var columns = map[string]struct {
	count  func(Row) int64
	change func(script Script, c *Call, o *Outcome)
}{
	"early": {func(r Row) int64 { return r.Early }, func(script Script, c *Call, o *Outcome) {
		if o.Err == "" && o.Status == 0 {
			o.Status = 1
		}
	}},
	"late": {func(r Row) int64 { return r.LatestNs - r.BoundNs }, func(script Script, c *Call, o *Outcome) {
		if o.Err == "" && o.Status == 0 {
			o.RetryAfterNs += 1000
		}
	}},
	"reply": {func(r Row) int64 { return r.WrongReplies }, func(script Script, c *Call, o *Outcome) { o.Remaining++ }},
	"state": {func(r Row) int64 { return r.WrongStates }, func(script Script, c *Call, o *Outcome) { o.State = State{} }},
	"ttl":   {func(r Row) int64 { return r.WrongTTLs }, func(script Script, c *Call, o *Outcome) { o.TTLMs += 2000 }},
	"difference": {func(r Row) int64 { return r.Differences }, func(script Script, c *Call, o *Outcome) {
		if o.Err != "" {
			o.Err += "!"
		}
	}},
	"an error": {func(r Row) int64 { return r.WrongReplies }, func(script Script, c *Call, o *Outcome) {
		*o = Outcome{Err: "ERR of nothing", State: o.State, TTLMs: o.TTLMs}
	}},
	"no error": {func(r Row) int64 { return r.WrongReplies }, func(script Script, c *Call, o *Outcome) { o.Err = "" }},
}

// Every fault of every script is found by a run, named by its row, its table and its check,
// and the other scripts' rows are right.
func TestRunFindsEachColumnWrong(t *testing.T) {
	for _, wrong := range Scripts {
		for name, column := range columns {
			made := int64(0)
			options := small(func(n int) { made += int64(n) })
			driver := canned{NewNative(), func(script Script, _ string, calls []Call, outcomes []Outcome) {
				for i := range calls {
					if script == wrong.Script {
						column.change(script, &calls[i], &outcomes[i])
					}
				}
			}}
			rows, err := Run(options, []Driver{driver})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				made -= r.Decisions
				fault := r.Script == wrong.Script
				if (column.count(r) > 0) != fault || (len(r.Faults()) > 0) != fault || (r.Smallest != nil) != fault || (r.Broken != "") != fault {
					t.Errorf("%s of %s: on %s the row is %+v", name, wrong.Script, r.Driver, r)
				}
				if r.Decisions != r.Asked || r.Asked < int64(options.Total(driver)/len(rows)) {
					t.Errorf("%s: %d decisions of %d", r.Script, r.Decisions, r.Asked)
				}
				if fault && !strings.HasPrefix(r.Broken, "trace ") {
					t.Errorf("%s: %q names no trace", r.Script, r.Broken)
				}
				if fault && r.Smallest.Len() > 1000 {
					t.Errorf("%s of %s: the smallest trace has %d calls", name, wrong.Script, r.Smallest.Len())
				}
			}
			if made != 0 {
				t.Errorf("%d decisions more were told of than the rows have", made)
			}
			var table bytes.Buffer
			if err := WriteTable(&table, rows); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("\nBROKEN: %s on canned: ", wrong.Script)
			if text := table.String(); !strings.Contains(text, want) || !strings.Contains(text, "make replay TRACE='"+string(wrong.Script)) ||
				strings.Count(text, "BROKEN") != strings.Count(text, want) {
				t.Errorf("%s of %s: the table is\n%s", name, wrong.Script, text)
			}
			if err := Check(rows); err == nil || !strings.HasPrefix(err.Error(), string(wrong.Script)+" on canned: ") {
				t.Errorf("%s of %s: the check says %v", name, wrong.Script, err)
			}
		}
	}
}

// A run whose answers are all right has no fault.
func TestRunOfRightAnswers(t *testing.T) {
	options := small(func(int) {})
	options.Load = func(Driver, Script) Load { return Load{Decisions: 6 * traceCalls, Streams: 1} }
	options.Live = time.Second // the native port has no clock of its own
	rows, err := Run(options, []Driver{NewNative(), canned{NewNative(), func(Script, string, []Call, []Outcome) {}}})
	if err == nil {
		err = Check(rows)
	}
	if err != nil {
		t.Error(err)
	}
	for i, r := range rows {
		if s := Scripts[i/2]; r.Script != s.Script || r.BoundNs != s.BoundNs || r.Driver != []string{"native", "canned"}[i%2] ||
			r.Playing <= 0 || r.Admitted <= 0 || r.Admitted >= r.Decisions {
			t.Errorf("row %d is %+v", i, r)
		}
	}
}

// idle says of itself that it has played, and has not, or not all.
type idle struct {
	*Native
	fill int // how many outcomes of a trace it fills
}

func (d idle) Play(script Script, key string, calls []Call, outcomes []Outcome) error {
	n := min(d.fill, len(calls))
	return d.Native.Play(script, key, calls[:n], outcomes[:n])
}

// failing is a driver that cannot go on, or cannot forget.
type failing struct {
	*Native
	play, forget error
}

func (d failing) Play(script Script, key string, calls []Call, outcomes []Outcome) error {
	return errors.Join(d.play, d.Native.Play(script, key, calls, outcomes))
}

func (d failing) Forget(string) error { return d.forget }

// living has a clock of its own, by which it comes to a tally.
type living struct {
	*Native
	tally func(callers bool) (Tally, error)
	asked func(calls []Call)
}

func (d living) Live(_ Script, _ uint64, _ time.Duration, callers bool) (Tally, error) {
	return d.tally(callers)
}

func (d living) Play(script Script, key string, calls []Call, outcomes []Outcome) error {
	d.asked(calls)
	return d.Native.Play(script, key, calls, outcomes)
}

func TestRunRefusesADriverThatDoesNothing(t *testing.T) {
	options := small(func(int) {})
	options.Live = time.Second
	live := func(tally Tally, err error) Driver {
		return living{NewNative(), func(bool) (Tally, error) { return tally, err }, func([]Call) {}}
	}
	broke := errors.New("broke off")
	for want, d := range map[string]Driver{
		"trace 0: call 0 of ":               idle{NewNative(), 0},
		"trace 0: call 1999 of 2000":        idle{NewNative(), 1999},
		noAnswer:                            idle{NewNative(), 100},
		"trace 0: broke off":                failing{NewNative(), broke, nil},
		"on native: trace 0: broke":         failing{NewNative(), nil, broke},
		"clock, callers false: no decision": live(Tally{}, nil),
		"by the server's clock: broke off":  live(Tally{Decisions: 1}, broke),
	} {
		if _, err := Run(options, []Driver{NewNative(), d}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What a driver comes to by a clock of its own counts in its row, once without callers and
// once with; its traces are those of callers' clocks.
func TestRunByTheServersClock(t *testing.T) {
	played := map[Script]int{}
	d := living{NewNative(), func(callers bool) (Tally, error) {
		if callers {
			return Tally{Decisions: 1000, Admitted: 100, WrongTTLs: 3, Broken: "expires early"}, nil
		}
		return Tally{Decisions: 10, Admitted: 1}, nil
	}, func(calls []Call) {
		for _, c := range calls {
			if c.ServerNs > 0 || c.ByServer {
				t.Fatalf("%+v sets the server's clock", c)
			}
		}
	}}
	options := small(func(int) {})
	options.Live = time.Second
	rows, err := Run(options, []Driver{d})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		played[r.Script]++
		if r.Decisions != r.Asked+1010 || r.WrongTTLs != 3 || r.Broken != "by the server's clock, callers true, expires early" || r.Smallest != nil {
			t.Errorf("%+v", r)
		}
	}
	if len(played) != len(Scripts) {
		t.Errorf("rows of %v", played)
	}
	options.Live = 0 // none is asked for
	if rows, err = Run(options, []Driver{d}); err != nil || Check(rows) != nil {
		t.Errorf("%v, %v", err, Check(rows))
	}
}

// The first that breaks is the one that is named and shrunk.
func TestRunNamesTheFirst(t *testing.T) {
	rows, err := Run(small(func(int) {}), []Driver{canned{NewNative(), func(script Script, key string, _ []Call, outcomes []Outcome) {
		switch key {
		case "gcra_v2:0":
			outcomes[7].Remaining++
		case "gcra_v2:3":
			outcomes[5].Remaining++
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r := rows[slices.IndexFunc(rows, func(r Row) bool { return r.Script == GCRAV2 })]
	if r.WrongReplies != 2 || !strings.HasPrefix(r.Broken, "trace 0, call 7, ") || r.Smallest.String() != NewTrace(GCRAV2, 1, 0).String() {
		t.Errorf("%d replies, %s", r.WrongReplies, r.Broken)
	}
}

// Each field of a tally is taken over.
func TestTallyAddsEveryField(t *testing.T) {
	for i := range reflect.TypeFor[Tally]().NumField() {
		name := reflect.TypeFor[Tally]().Field(i).Name
		var one Tally
		switch field := reflect.ValueOf(&one).Elem().Field(i); field.Kind() {
		case reflect.String:
			field.SetString("broke")
		default:
			field.SetInt(3)
		}
		if name == "BrokenAt" {
			one.Broken = "broke"
		}
		var sum Tally
		sum.Add(&one)
		if sum != one {
			t.Errorf("%s: %+v becomes %+v", name, one, sum)
		}
		sum.Add(&one)
		twice := reflect.ValueOf(sum).Field(i)
		if name != "Broken" && name != "BrokenAt" && name != "LatestNs" && twice.Int() != 6 {
			t.Errorf("%s: 3 and 3 are %v", name, twice)
		}
		if sound := name == "Decisions" || name == "Admitted" || name == "LatestNs"; one.Sound() != sound {
			t.Errorf("%s: %+v is sound: %v", name, one, one.Sound())
		}
	}
	first := Tally{Broken: "first", BrokenAt: 1, LatestNs: 5}
	first.Add(&Tally{Broken: "second", BrokenAt: 2, LatestNs: 4})
	if want := (Tally{Broken: "first", BrokenAt: 1, LatestNs: 5}); first != want {
		t.Errorf("%+v, want %+v", first, want)
	}
}

// right is a row without a fault.
func right(script Script, driver string) Row {
	return Row{Script: script, Driver: driver, BoundNs: 255, Asked: 10, Playing: time.Second,
		Tally: Tally{Decisions: 10, Admitted: 1, LatestNs: 255}}
}

func TestRowFaults(t *testing.T) {
	if r := right(GCRAV1, "x"); r.Faults() != nil {
		t.Errorf("%q", r.Faults())
	}
	for want, change := range map[string]func(r *Row){
		"broke": func(r *Row) { r.Broken = "broke" },
		"columns are not 0, and no call is named":                          func(r *Row) { r.WrongTTLs = 1 },
		"256 ns late, the bound is 255":                                    func(r *Row) { r.LatestNs = 256 },
		"no decision was asked for":                                        func(r *Row) { r.Asked = 0 },
		"9 decisions of 10 that were asked for":                            func(r *Row) { r.Decisions = 9 },
		"nothing was admitted":                                             func(r *Row) { r.Admitted = 0 },
		"it took no time":                                                  func(r *Row) { r.Playing = 0 },
		"no decision was asked for, nothing was admitted, it took no time": func(r *Row) { *r = Row{} },
	} {
		r := right(GCRAV1, "x")
		change(&r)
		if got := strings.Join(r.Faults(), ", "); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	all := func() (rows []Row) {
		for _, s := range Scripts {
			rows = append(rows, right(s.Script, "a"), right(s.Script, "b"))
		}
		return rows
	}
	if err := Check(all()); err != nil {
		t.Error(err)
	}
	for i := range all() { // whatever row it is
		rows := all()
		rows[i].Broken = "broke"
		want := fmt.Sprintf("%s on %s: broke", rows[i].Script, rows[i].Driver)
		if err := Check(rows); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		rows = slices.Delete(all(), i, i+1)
		want = fmt.Sprintf("%s was not played on %s", all()[i].Script, all()[i].Driver)
		if err := Check(rows); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := Check(nil); err == nil || strings.Count(err.Error(), "was not played") != len(Scripts) {
		t.Errorf("of no rows the check says %v", err)
	}
	rows := all()
	rows[0].Admitted, rows[5].Broken = 0, "broke"
	if err := Check(rows); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("of two faults the check says %v", err)
	}
}

// The table has each number under its name.
func TestTableHasEveryColumn(t *testing.T) {
	r := Row{Script: GCRAV2, Driver: "d", BoundNs: 13, Playing: 2 * time.Second, Tally: Tally{Decisions: 1000, Admitted: 11, Early: 12,
		LatestNs: 14, WrongReplies: 15, WrongStates: 16, WrongTTLs: 17, Differences: 18, Broken: "call 5 broke"}}
	var out bytes.Buffer
	if err := WriteTable(&out, []Row{right(GCRAV1, "c"), r}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if got, want := strings.Join(strings.Fields(lines[0]), " "),
		"script driver decisions admitted early latest ns bound ns reply state ttl ≠ native per second"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := strings.Join(strings.Fields(lines[2]), " "), "gcra_v2 d 1000 11 12 14 13 15 16 17 18 500"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, want := range []string{"\nBROKEN: gcra_v2 on d: call 5 broke\n", "\nBROKEN: gcra_v2 on d: 14 ns late, the bound is 13\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	for _, broken := range []error{errors.New("no room"), nil} {
		if err := WriteTable(writer(func([]byte) error { return broken }), []Row{r}); !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
	}
}

type writer func([]byte) error

func (w writer) Write(p []byte) (int, error) {
	if err := w(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// A load is rounded up to whole traces, with no more streams than there are, none of a
// window.
func TestLoad(t *testing.T) {
	for _, test := range []struct {
		script Script
		load   Load
		traces int
		want   int
	}{
		{GCRAV1, Load{Decisions: 1}, 1, traceCalls},
		{GCRAV1, Load{Decisions: traceCalls}, 1, traceCalls},
		{GCRAV1, Load{Decisions: traceCalls + 1}, 2, 2 * traceCalls},
		{GCRAV2, Load{Streams: 2}, 2, 2 * 106250},
		{GCRAV2, Load{Decisions: 1, Streams: 1}, 2, traceCalls + 106250},
		{GCRAV1, Load{Streams: 1000}, 256, 256 * 106250},
		{WindowV1, Load{Decisions: 5, Streams: 3}, 1, traceCalls},
	} {
		o := Options{Load: func(Driver, Script) Load { return test.load }}
		load := o.load(NewNative(), test.script)
		if load.traces() != test.traces || load.decisions() != test.want {
			t.Errorf("%s, %+v: %d traces, %d decisions, want %d and %d", test.script, test.load, load.traces(), load.decisions(), test.traces, test.want)
		}
	}
	if made := len(NewSaturated(GCRAV2, 1).Calls); made != 106250 {
		t.Errorf("a stream has %d calls", made)
	}
	o := Options{Load: func(_ Driver, s Script) Load { return Load{Decisions: len(s)} }}
	if got := o.Total(NewNative()); got != 4*traceCalls {
		t.Errorf("%d decisions in all", got)
	}
}
