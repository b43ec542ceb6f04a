package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/precision"
	"github.com/tatami-rate/tatami/precision/internal/controls"
	"github.com/tatami-rate/tatami/precision/internal/plots"
	"github.com/tatami-rate/tatami/precision/servers"
	"github.com/tatami-rate/tatami/precision/servers/containers"
)

// The test binary is the command itself where this variable is set.
const asCommand = "TATAMI_PRECISION_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		os.Exit(99) // main does not return
	}
	os.Exit(m.Run())
}

// canned is the native port with answers that are changed.
type canned struct {
	*precision.Native
	change func(o *precision.Outcome)
}

func (canned) Name() string { return "canned" }

func (d canned) Play(script precision.Script, key string, calls []precision.Call, outcomes []precision.Outcome) error {
	err := d.Native.Play(script, key, calls, outcomes)
	for i := range outcomes {
		d.change(&outcomes[i])
	}
	return err
}

// rejected is the result of a control that is rejected.
var rejected = controls.Result{Fault: "a fault", Calls: 1, Right: 1,
	Wrong: []string{"early"}, Expected: []string{"early"}, Generated: "call 0"}

// run runs the command on a driver with this change of its answers, and with these results
// of the controls.
func run(t *testing.T, change func(o *precision.Outcome), results []controls.Result, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	closed := false
	s := suite{out: &stdout, err: &stderr,
		open: func() (*opened, error) {
			return &opened{[]precision.Driver{canned{precision.NewNative(), change}}, []string{"the images: IMAGES=none"},
				[]func(){func() { closed = true }}}, nil
		},
		controls: func() ([]controls.Result, error) { return results, nil },
		draw:     func(uint64) ([]plots.Plot, error) { return nil, nil },
	}
	code = s.command(args)
	if !closed && strings.Contains(stdout.String(), "canned") {
		t.Error("the drivers stay open")
	}
	return code, stdout.String(), stderr.String()
}

func right(*precision.Outcome) {}

func TestEveryClaimHeld(t *testing.T) {
	code, out, errs := run(t, right, []controls.Result{rejected, rejected}, "-cases", "100", "-seed", "7")
	if code != 0 || errs != "" {
		t.Errorf("exit code %d: %s", code, errs)
	}
	lines := strings.Split(out, "\n")
	if last := lines[len(lines)-2]; last != "left out: the images: IMAGES=none" {
		t.Errorf("the last line is %q", last)
	}
	for _, want := range []string{"every claim held (CASES=100 SEED=7)\n", "every control was rejected, 2 of 2\n", "gcra_v1  canned", "a fault"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// A wrong answer of any kind is an exit code of 1, and what is wrong is named.
func TestWrongAnswers(t *testing.T) {
	for name, change := range map[string]func(o *precision.Outcome){
		"early": func(o *precision.Outcome) {
			if o.Err == "" && o.Status == 0 {
				o.Status = 1
			}
		},
		"late": func(o *precision.Outcome) {
			if o.Err == "" && o.Status == 0 {
				o.RetryAfterNs += 1000
			}
		},
		"reply": func(o *precision.Outcome) { o.ResetAfterNs++ },
		"state": func(o *precision.Outcome) { o.State = precision.State{} },
		"ttl":   func(o *precision.Outcome) { o.TTLMs -= 2000 },
		"outcome": func(o *precision.Outcome) {
			if o.Err != "" {
				o.Err += "!"
			}
		},
	} {
		code, out, errs := run(t, change, []controls.Result{rejected}, "-cases", "2400000") // a trace of each style
		if code != 1 || !strings.Contains(errs, " on canned: ") || !strings.Contains(errs, "make precision CASES=2400000 SEED=1") ||
			strings.Contains(out, "every") || !strings.Contains(out, "BROKEN: ") || !strings.HasSuffix(out, "\nleft out: the images: IMAGES=none\n") {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errs)
		}
	}
	code, out, errs := run(t, func(o *precision.Outcome) { o.Err = "the driver gave no answer" }, nil, "-cases", "100")
	if code != 1 || !strings.Contains(errs, "the driver gave no answer") || strings.Contains(out, "every") {
		t.Errorf("no answers: exit code %d\n%s%s", code, out, errs)
	}
}

// A control that is not rejected is an exit code of 1, alone and after the claims.
func TestControlsNotRejected(t *testing.T) {
	other, unseen, idle := rejected, rejected, rejected
	other.Fault, other.Wrong = "wrong in another way", []string{"late"}
	unseen.Fault, unseen.Generated = "no generated trace finds it", ""
	idle.Fault, idle.Right = "tries nothing", 0
	for want, results := range map[string][]controls.Result{
		`"a fault" is not rejected`:                     {{Fault: "a fault", Calls: 1, Right: 1, Expected: []string{"early"}, Generated: "call 0"}},
		`"wrong in another way" is not rejected`:        {rejected, rejected, other},
		`"no generated trace finds it" is not rejected`: {unseen, rejected},
		`"tries nothing" tries nothing`:                 {rejected, idle, rejected},
		"no control was played":                         nil,
	} {
		for _, args := range [][]string{{"-cases", "100"}, {"-controls"}} {
			code, out, errs := run(t, right, results, args...)
			if code != 1 || !strings.Contains(errs, want) || strings.Contains(out, "every control") {
				t.Errorf("%s, %q: exit code %d\n%s%s", want, args, code, out, errs)
			}
		}
	}
	code, out, errs := run(t, right, []controls.Result{rejected}, "-controls")
	if code != 0 || out == "" || errs != "" || strings.Contains(out, "canned") {
		t.Errorf("-controls: exit code %d\n%s%s", code, out, errs)
	}
}

func TestReplay(t *testing.T) {
	const trace = "gcra_v2 3,1000000000,2,1,1780000080000000001 3,1000000000,2,2,1780000080000000001"
	code, out, errs := run(t, right, nil, "-replay", trace)
	if code != 0 || errs != "" || !strings.HasPrefix(out, "canned\n   0  {Amount:3 ") || !strings.HasSuffix(out, "every claim held on 1 drivers\n") ||
		!strings.Contains(out, "Value:1780000080333333335") || !strings.Contains(out, "\nleft out: the images") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	code, out, errs = run(t, func(o *precision.Outcome) { o.Remaining++ }, nil, "-replay", trace)
	if code != 1 || !strings.Contains(out, "\nBROKEN: call 0, ") || !strings.Contains(errs, "1 of 1 drivers") || strings.Contains(out, "every claim held") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	code, _, errs = run(t, func(o *precision.Outcome) { o.Err = "the driver gave no answer" }, nil, "-replay", trace)
	if code != 1 || !strings.Contains(errs, "canned: call 0 of 2") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, _, errs = run(t, right, nil, "-replay", "gcra_v9 1,1,1,1,1"); code != 1 || !strings.Contains(errs, "no script") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestReport(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "report")
	for _, change := range []func(o *precision.Outcome){right, func(o *precision.Outcome) { o.Remaining++ }} {
		run(t, change, []controls.Result{rejected}, "-cases", "100", "-report", folder)
		text, err := os.ReadFile(filepath.Join(folder, "report.md"))
		if err != nil || !strings.Contains(string(text), "\n- the images: IMAGES=none\n") {
			t.Errorf("%v\n%s", err, text)
		}
	}
	if code, _, errs := run(t, right, []controls.Result{rejected}, "-cases", "100", "-report", "/dev/null/report"); code != 1 || !strings.Contains(errs, "not a directory") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-cases", "0"}, {"-long", "-1"}, {"more"}, {"-cases"}, {"-no-such"}} {
		if code, out, errs := run(t, right, nil, args...); code != 2 || out != "" || errs == "" {
			t.Errorf("%q: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	if code, out, errs := run(t, right, nil, "-help"); code != 0 || out != "" || !strings.Contains(errs, "-replay") {
		t.Errorf("-help: exit code %d\n%s%s", code, out, errs)
	}
}

func TestLong(t *testing.T) {
	var out, errs bytes.Buffer
	long := func(broken string, hash uint64, args ...string) int {
		out.Reset()
		errs.Reset()
		s := suite{out: &out, err: &errs, long: func(seed uint64, decisions int, made func(int)) (rows []precision.Row, _ uint64) {
			made(decisions)
			for _, s := range precision.Scripts {
				r := precision.Row{Script: s.Script, Driver: "native", Asked: 5, Playing: 1}
				r.Decisions, r.Admitted, r.Broken = 5, 1, broken
				rows = append(rows, r)
			}
			return rows, hash
		}}
		return s.command(args)
	}
	if code := long("", 0xabc, "-long", "7", "-seed", "3"); code != 0 ||
		!strings.Contains(out.String(), "every claim held over 20 decisions of seed 3; hash 0x0000000000000abc\n") {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
	if code := long("call 3 broke", 0xabc, "-long", "7"); code != 1 || !strings.Contains(errs.String(), "gcra_v2 on native: call 3 broke") ||
		strings.Contains(out.String(), "every") {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
	for _, test := range []struct {
		hash uint64
		args []string
		code int
	}{
		{pinned, []string{"-long", "1000000000"}, 0},
		{pinned + 1, []string{"-long", "1000000000"}, 1},
		{pinned + 1, []string{"-long", "1000000001"}, 0},
		{pinned + 1, []string{"-long", "1000000000", "-seed", "2"}, 0},
	} {
		if code := long("", test.hash, test.args...); code != test.code || (code == 1) != strings.Contains(errs.String(), "the hash is not the pinned 0x") {
			t.Errorf("hash %#x, %q: exit code %d: %s", test.hash, test.args, code, &errs)
		}
	}
}

func TestFailures(t *testing.T) {
	broke := errors.New("broke off")
	on := func() (*opened, error) { return &opened{drivers: []precision.Driver{precision.NewNative()}}, nil }
	none := func() ([]controls.Result, error) { return nil, broke }
	all := func() ([]controls.Result, error) { return []controls.Result{rejected}, nil }
	notOpen := func() (*opened, error) { return &opened{}, broke }
	for _, test := range []struct {
		suite suite
		args  []string
		want  string
	}{
		{suite{open: notOpen, controls: all}, []string{"-cases", "1"}, "broke off"},
		{suite{open: notOpen, controls: all}, []string{"-replay", "gcra_v2 1,1,1,1,1"}, "broke off"},
		{suite{open: on, controls: none}, []string{"-cases", "1"}, "broke off"},
		{suite{open: on, controls: none}, []string{"-controls"}, "broke off"},
		{suite{open: on, controls: all, draw: func(uint64) ([]plots.Plot, error) { return nil, broke }},
			[]string{"-cases", "1", "-report", t.TempDir()}, "broke off"},
		{suite{open: func() (*opened, error) { return &opened{}, nil }, controls: all}, []string{"-cases", "1"}, "was not played"},
	} {
		var errs bytes.Buffer
		test.suite.out, test.suite.err = io.Discard, &errs
		if code := test.suite.command(test.args); code != 1 || !strings.Contains(errs.String(), test.want) {
			t.Errorf("%q: exit code %d, %s, want %s", test.args, code, &errs, test.want)
		}
	}
}

// Output that cannot be written is no success.
func TestOutputThatCannotBeWritten(t *testing.T) {
	s := suite{out: full{}, err: io.Discard,
		open:     func() (*opened, error) { return &opened{drivers: []precision.Driver{precision.NewNative()}}, nil },
		controls: func() ([]controls.Result, error) { return []controls.Result{rejected}, nil }}
	for _, args := range [][]string{{"-cases", "1"}, {"-controls"}} {
		if code := s.command(args); code != 1 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

// Images that cannot be started are named, and a failure when REQUIRE_SERVERS is 1. One that
// breaks is a failure always.
func TestImagesThatAreLeftOut(t *testing.T) {
	broke := errors.New("broke off")
	for _, test := range []struct {
		images, required string
		start            error
		left, want       string
	}{
		{"none", "", nil, "the images: IMAGES=none", ""},
		{"none", "1", nil, "", "the images: IMAGES=none"},
		{"redis:7.0,redis:8.0", "", containers.ErrNoDocker, "redis:7.0, redis:8.0: no Docker daemon answers", ""},
		{"redis:7.0,redis:8.0", "1", containers.ErrNoDocker, "", "redis:7.0, redis:8.0: no Docker daemon answers"},
		{"redis:7.0", "", broke, "", "broke off"},
	} {
		t.Setenv("IMAGES", test.images)
		t.Setenv("REQUIRE_SERVERS", test.required)
		on := &opened{}
		got := ""
		if err := on.images(t.Context(), func(context.Context, string) (*servers.Server, error) { return nil, test.start }); err != nil {
			got = err.Error()
		}
		if left := strings.Join(on.leftOut, "\n"); got != test.want || left != test.left {
			t.Errorf("IMAGES=%s REQUIRE_SERVERS=%s: %q, left out %q; want %q, left out %q", test.images, test.required, got, left, test.want, test.left)
		}
	}
}

// What this machine lacks is named, and a failure when REQUIRE_SERVERS is 1; the exit code is
// that of the process.
func TestWhatIsLeftOut(t *testing.T) {
	const trace = "gcra_v2 3,1000000000,2,1,1780000080000000001"
	for _, test := range []struct {
		env  []string
		code int
		want []string
	}{
		{[]string{"IMAGES=none"}, 0, []string{"native\n", "emulator\n", "left out: a real server, as REDIS_URL is not set: no redis-server on PATH\n",
			"left out: the images: IMAGES=none\n", "every claim held on 2 drivers\n"}},
		{[]string{"IMAGES=none", "REQUIRE_SERVERS=1"}, 1, []string{"a real server, as REDIS_URL is not set: no redis-server on PATH"}},
		{[]string{"IMAGES=none", "REDIS_URL=redis://127.0.0.1:1"}, 1, []string{"REDIS_URL: "}},
	} {
		command := exec.Command(os.Args[0], "-replay", trace)
		command.Env = append([]string{asCommand + "=1", "PATH=", "HOME=" + t.TempDir()}, test.env...)
		output, _ := command.CombinedOutput()
		if code := command.ProcessState.ExitCode(); code != test.code {
			t.Errorf("%q: exit code %d, want %d\n%s", test.env, code, test.code, output)
		}
		for _, want := range test.want {
			if !strings.Contains(string(output), want) {
				t.Errorf("%q: %q is not in\n%s", test.env, want, output)
			}
		}
	}
	command := exec.Command(os.Args[0], "-cases", "0")
	command.Env = []string{asCommand + "=1"}
	if _ = command.Run(); command.ProcessState.ExitCode() != 2 {
		t.Errorf("-cases 0: exit code %d", command.ProcessState.ExitCode())
	}
}

func TestLacks(t *testing.T) {
	for _, required := range []string{"", "0", "1"} {
		t.Setenv("REQUIRE_SERVERS", required)
		on := &opened{}
		err := on.lacks("a server", errors.New("none"))
		if required == "1" {
			if err == nil || err.Error() != "a server: none" || len(on.leftOut) > 0 {
				t.Errorf("REQUIRE_SERVERS=1: %v, %q", err, on.leftOut)
			}
		} else if err != nil || len(on.leftOut) != 1 || on.leftOut[0] != "a server: none" {
			t.Errorf("REQUIRE_SERVERS=%s: %v, %q", required, err, on.leftOut)
		}
	}
}
