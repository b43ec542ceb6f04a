package precision

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision/servers"
)

// gappa runs gappa on a proof and returns what it prints: nothing when it proves
// everything.
func gappa(t *testing.T, proof string) string {
	t.Helper()
	command := exec.Command("gappa", "-Eno-auto-dichotomy") // quicker, and nothing here needs it
	command.Stdin = strings.NewReader(proof)
	out, err := command.CombinedOutput()
	if (err == nil) != (len(out) == 0) {
		t.Fatalf("gappa: %v: %s", err, out)
	}
	return string(out)
}

func needGappa(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("gappa"); err != nil && !servers.Required() {
		t.Skipf("skipped: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
}

func readProof(t *testing.T, script Script) string {
	t.Helper()
	proof, err := os.ReadFile(filepath.Join("proof", string(script)+".g"))
	if err != nil {
		t.Fatal(err)
	}
	return string(proof)
}

// provedScripts are the scripts, each after those whose proofs its own stands on.
var provedScripts = []Script{GCRAV1, GCRAV2, WindowV1, LimitsV1}

// Gappa proves each script's operations exact or bounded.
func TestProof(t *testing.T) {
	needGappa(t)
	for _, script := range provedScripts {
		if out := gappa(t, readProof(t, script)); out != "" {
			t.Errorf("%s: %s", script, out)
		}
	}
	if len(provedScripts) != len(lua.Assets) {
		t.Errorf("%d scripts are proved, of %d", len(provedScripts), len(lua.Assets))
	}
}

// The proofs assume no less of the arguments, the clock and the state than a script may find,
// by the ranges that README.md gives.
func TestProofAssumesTheDomain(t *testing.T) {
	const p = "0x1p"
	all := map[string][2]string{"a": {"1", "9007199254740991"}, "b": {"1", "9007199254740991"}, "us": {"0", "999999"},
		"now_sub_ns": {"0", "999999999"}}
	gcra := map[string][2]string{"period_ns": {"1", p + "52"}, "interval_": {"1", p + "52"},
		"sub_ns": {"0", "999999999"}, "Spend": {"0", p + "52"}, "left_": {"1", p + "52"}, "tat_sub_ns": {"0", "999999999"}}
	for script, more := range map[Script]map[string][2]string{
		GCRAV1: {"burst": {"1", p + "52"}, "now_s": {"0", "4611686018"}, "below": {"0", "255"}, "up": {"0", "256"}, "now_grid_": {"0", p + "61"},
			"tau_": {"256", p + "60"}, "stored_s": {"0", "4611686018"}, "tat_": {"0", p + "61"}, "Spend": {"0", p + "60"},
			"ahead_": {"0", p + "61"}, "left_": {"256", p + "60"}, "margin_s": {"2", "61"}, "now_s_": {"0", "2305843009"}},
		GCRAV2: {"now_s": {"0", "9223372036"}, "now_s_late": {"9218868437", "9999999999"}, "stored_s": {"0", "9999999999"},
			"Tau": {"1", p + "52"}, "tau_": {"1", p + "52"}, "ahead_": {"0", "9007199254740991"}, "last_s": {"0", "9999999999"},
			"last_sub_ns": {"0", "999999999"}, "tat_s_": {"0", "9223372036"}, "margin_s": {"2", "61"},
			"expiry_s_tat": {"0", "9223372036"}, "expiry_s_last": {"0", "9999999999"}},
		WindowV1: {"now_s": {"0", "4611686018"}, "w": {"1", p + "52"}, "index": {"1", "4294967295"}, "stored": {"0", "4294967295"},
			"n": {"2", p + "31"}, "previous": {"1", "65535"}, "left_": {"1", p + "52"}, "current": {"0", "65535"},
			"amount": {"1", "65535"}, "cost": {"0", p + "52"}, "carried": {"0", "65535"}, "gap": {"0", p + "52"},
			"from": {"0", p + "52"}, "e": {"0", "4503599627370495"}, "margin_s": {"1", "60"}},
		LimitsV1: {"n": {"1", "32"}, "at": {"1", "32"}, "now_s": {"0", "9223372036"}, "now_sub_ns": {"0", "999999999"},
			"cost": {"-" + p + "52", p + "52"}, "Charge": {"1", "9007199254740991"}, "Given": {"1", p + "53"}, "c": {"1", "9007199254740991"},
			"ahead_": {"0", "9007199254740991"}, "paid_text_s": {"0", "9999999999"}, "sum_s": {"0", "999999999999999"},
			"before_text_s": {"0", "999999999999999"}, "from_s": {"0", "9999999999"}, "last_s": {"0", "9999999999"},
			"expiry_s": {"0", "9999999999"}, "margin_s": {"2", "61"}, "paid_index": {"0", "4294967295"}, "index": {"0", "4294967295"},
			"previous": {"0", "65535"}, "current": {"0", "65535"}, "cost_charged": {"1", p + "52"}},
	} {
		proof := readProof(t, script)
		domain := maps.Clone(more)
		if script != LimitsV1 { // which has these from the others
			maps.Copy(domain, all)
		}
		if script == GCRAV1 || script == GCRAV2 {
			maps.Copy(domain, gcra)
			maps.Copy(domain, more) // where gcra_v1 has more of it
		}
		for name, want := range domain {
			least, most, ok := assumed(proof, name)
			from, _ := numeral(want[0])
			to, _ := numeral(want[1])
			if !ok || least > from || most < to {
				t.Errorf("%s.g assumes %s in %v .. %v, a script has %s .. %s", script, name, least, most, want[0], want[1])
			}
		}
	}
}

// Gappa refuses each proof when a bound is one step further, and names what is then
// false. Nothing could be refused if the assumptions contradicted each other.
func TestProofRefused(t *testing.T) {
	needGappa(t)
	const less = "(quotient - Quotient) * b"
	remainders := [][3]string{
		{"/\\ a in [1,9007199254740991]", "/\\ a in [1,9007199254740992]", less},
		{"floor_ab * b in [-0x1p53,0x1p53]", "floor_ab * b in [-9007199254740993,0x1p53]", "multiple - floor_ab * b"},
		{"a - multiple_ in [0,0x1p53]", "a - multiple_ in [0,9007199254740993]", "remainder - (a - multiple_)"},
	}
	limits := append([][3]string{
		{"period_ns in [1,0x1p52]", "period_ns in [1,4503599627370498]", "raised - (period_ns + up_p)"},
	}, remainders...)
	for script, edits := range map[Script][][3]string{
		GCRAV1: append([][3]string{
			{"in [-0.5,0.5]", "in [-0.49,0.49]", "(most - Most) * interval_"},
			{"@FIX(interval_ + up_i,8)", "@FIX(interval_ + up_i,7)", "tau - (interval_ + up_i) * burst"},
			{"now_s in [0,4611686018]", "now_s in [0,4611686019]", "seconds_ns - now_s * 1e9"},
			{"seconds_ns_ + grid_sub_ns_ in [0,0x1p61]", "seconds_ns_ + grid_sub_ns_ in [0,2305843009213694208]",
				"now_grid - (seconds_ns_ + grid_sub_ns_)"},
			{"now_grid_ + up in [0,0x1p61]", "now_grid_ + up in [0,2305843009213694208]", "up_to_grid - (now_grid_ + up)"},
			{"tat_ in [0,0x1p61]", "tat_ in [0,2305843009213694208]", "ahead - (tat_ - now_grid_)"},
			{"stored_ns_ + sub_ns_up_ in [0,0x1p61]", "stored_ns_ + sub_ns_up_ in [0,2305843009213694208]",
				"tat - (stored_ns_ + sub_ns_up_)"},
			{"retry_near_ in [256,9007199254740736]", "retry_near_ in [256,9007199254741248]", "retry_near - (retry_near_ - below)"},
			{"ahead_near_ in [0,9007199254740736]", "ahead_near_ in [0,9007199254741248]", "reset_near - (ahead_near_ - below)"},
			{"@FIX(ahead_spent_,8)", "@FIX(ahead_spent_,7)", "ns - (grid_sub_ns_ + ahead_spent_)"},
			{"@FIX(whole_s_,0)", "@FIX(whole_s_,-24)", "ahead_s - whole_s_"},
			{"ttl_s in [2,2147483647]", "ttl_s in [2,1152921565]", "ttl_s"},
			{"@FIX(left_,8)", "@FIX(left_,6)", "left_whole"},
		}, limits...),
		GCRAV2: append([][3]string{
			{"Tau in [1,0x1p52]", "Tau in [1,9007199254740993]", "tau - Tau"},
			{"near_seconds + N in [-9007199254740991,", "near_seconds + N in [-9007199254740993,", "near - (near_seconds + N)"},
			{"ahead_ in [0,9007199254740991]", "ahead_ in [0,9007199254740993]", "retry - (ahead_ - room_)"},
			{"ahead_far - Far in [-1024,1024]", "ahead_far - Far in [-1023,1023]", "ahead_far - Far"},
			{"in [512,3584]", "in [513,3584]", "ahead_more - Far"},
			{"in [512,3584]", "in [512,3583]", "ahead_more - Far"},
			{"in [0,4096]", "in [1,4096]", "far_retry - (Far - room_)"},
			{"in [0,4096]", "in [0,4095]", "far_retry - (Far - room_)"},
			{"carry_s in [0,4503600]", "carry_s in [0,9007199254740993]", "whole_s - carry_s"},
			{"ttl_s in [2,2147483647]", "ttl_s in [2,4503660]", "ttl_s"},
			{"double= ahead_far + 2048", "double= ahead_far + 1535", "far_retry - (Far - room_)"},
		}, limits...),
		WindowV1: append([][3]string{
			{"now_s in [0,4611686018]", "now_s in [0,4611686019]", "seconds_ns - now_s * 1e9"},
			{"seconds_ns_ in [0,0x1p62]", "seconds_ns_ in [-512,0x1p62]", "limit - (1b62 - seconds_ns_)"},
			{"in [-0x1p-20,0x1p-20]", "in [-0x1.fp-21,0x1.fp-21]", "whole - (index + 5e-1)"},
			{"in [-0x1p-36,0x1p-36]", "in [-0x1.fp-37,0x1.fp-37]", "nearest_carried - (Carried + 5e-1)"},
			{"Carried_share in [0,0x1p52]", "Carried_share in [0,9007199254740993]", "carried_share - Carried_share"},
			{"N_w in [2,120000000000]", "N_w in [2,9007199254740993]", "n_w - N_w"},
			{"far_more - Far_wait in [1,3]", "far_more - Far_wait in [2,3]", "far_more - Far_wait"},
			{"far_more - Far_wait in [1,3]", "far_more - Far_wait in [1,2]", "far_more - Far_wait"},
			{"double= retry_wait + 2", "double= retry_wait + 1", "far_more - Far_wait"},
			{"end_more - Far_end in [1,3]", "end_more - Far_end in [2,3]", "end_more - Far_end"},
			{"Free_share in [0,0x1p52]", "Free_share in [0,9007199254740993]", "free_share - Free_share"},
			{"part_ - part_rest in [0,0x1p32]", "part_ - part_rest in [0,9007199254740993]", "part_whole - (part_ - part_rest)"},
			{"end_ns - End in [-1,1]", "end_ns - End in [-0.9,0.9]", "end_ns - End"},
			{"in [-0x1p-30,0x1p-30]", "in [-0x1.fp-31,0x1.fp-31]", "end_s - End_s"},
			{"@FIX(ceil_s_,0)", "@FIX(ceil_s_,-22)", "ceil_ns - ceil_s_ * 1e9"},
			{"@FIX(end_ns_ + lacks_,9)", "@FIX(end_ns_ + lacks_,0)", "raised - (end_ns_ + lacks_)"},
		}, remainders...),
		LimitsV1: {
			{"Charge in [1,9007199254740991]", "Charge in [1,9007199254740993]", "charge - Charge"},
			{"ahead_ + charge_ in [0,9007199254740991]", "ahead_ + charge_ in [0,9007199254740993]", "debt - (ahead_ + charge_)"},
			{"debt_near_ in [1,0x1p52]", "debt_near_ in [1,9007199254740991]", "ns - (now_sub_ns + debt_near_)"},
			{"debt_rest_ in [503599627370496,5007199254740991]", "debt_rest_ in [503599627370496,9007199254740991]", "ns_far"},
			{"paid_seconds_ + Paid_n in [-9007199254740991,", "paid_seconds_ + Paid_n in [-9007199254740993,", "paid - (paid_seconds_ + Paid_n)"},
			{"since_seconds_ + Since_n in [-9007199254740991,", "since_seconds_ + Since_n in [-9007199254740993,", "since - (since_seconds_ + Since_n)"},
			{"sum_s in [0,999999999999999]", "sum_s in [0,9999999999999999]", "since_s - (sum_s - before_text_s)"},
			{"worth_ - since_ in [-0x1p53,", "worth_ - since_ in [-9007199254740993,", "worth - (worth_ - since_)"},
			{"Given in [1,0x1p53]", "Given in [1,9007199254740993]", "given - Given"},
			{"c in [1,9007199254740991]", "c in [1,9007199254740993]", "ns_back - (sub_ns - c)"},
			{"@FIX(ns_ - tat_sub_ns,9)", "@FIX(ns_ - tat_sub_ns,-2)", "whole_ns - (ns_ - tat_sub_ns)"},
			{"ttl_s in [1,2147483647]", "ttl_s in [1,9007260]", "ttl_s"},
			{"far_less - (Far - c) in [0,4096]", "far_less - (Far - c) in [1,4096]", "far_less - (Far - c)"},
			{"far_less - (Far - c) in [0,4096]", "far_less - (Far - c) in [0,4095]", "far_less - (Far - c)"},
			{"remaining_ in [0,0x1p52]", "remaining_ in [0,9007199254740991]", "uncharged - (remaining_ + cost_charged)"},
			{"previous in [0,65535]", "previous in [0,9007199254740993]", "counted - (previous + current)"},
		},
	} {
		proof := readProof(t, script)
		for _, edit := range edits {
			if strings.Count(proof, edit[0]) != 1 {
				t.Errorf("%s: %q does not stand there once", script, edit[0])
				continue
			}
			out := gappa(t, strings.Replace(proof, edit[0], edit[1], 1))
			if !strings.Contains(out, "some properties were not satisfied") || !strings.Contains(out, edit[2]) {
				t.Errorf("%s with %q: gappa answers %q and does not refuse %s", script, edit[1], out, edit[2])
			}
		}
	}
}
