package emulator

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator/number"
	"github.com/tatami-rate/tatami/precision/servers"
)

// Each rule is tested twice from one table: the emulator against what is written
// here, on every machine, and a real server against the same.

// texts are what tonumber reads, as '%.17g', or nil.
var texts = []struct{ text, want string }{
	{"", "nil"}, {" ", "nil"}, {"0", "0"}, {"-0", "-0"}, {"+0", "0"}, {"00", "0"},
	{"010", "10"}, {" 10 ", "10"}, {"\t\n\v\f\r10\r\f\v\n\t", "10"}, {"10\u00a0", "nil"},
	{"1e3", "1000"}, {"1E3", "1000"}, {"1e+3", "1000"}, {"1e-3", "0.001"}, {"1e", "nil"},
	{"1e+", "nil"}, {"e3", "nil"}, {"1e3.5", "nil"}, {"1 e3", "nil"}, {"1_000", "nil"},
	{"10abc", "nil"}, {"1.5", "1.5"}, {"1.", "1"}, {".5", "0.5"}, {".", "nil"}, {"..5", "nil"},
	{"1..5", "nil"}, {"-", "nil"}, {"+", "nil"}, {"--1", "nil"}, {"+-1", "nil"}, {"- 1", "nil"},
	{"+1", "1"}, {"-1", "-1"}, {"1,5", "nil"}, {"1e400", "inf"}, {"-1e400", "-inf"},
	{"1e-400", "0"}, {"-1e-400", "-0"}, {"1e99999999999999999999", "inf"},
	{"1e-99999999999999999999", "0"}, {"0e99999999999999999999", "0"},
	{"inf", "inf"}, {"-inf", "-inf"}, {"+INF", "inf"}, {"Infinity", "inf"}, {"infinit", "nil"},
	{"infx", "nil"}, {"inf ", "inf"}, {"in", "nil"}, {"nan", "nan"}, {"-nan", "-nan"},
	{"NaN", "nan"}, {"nan()", "nan"}, {"nan(1_aZ)", "nan"}, {"nan(", "nil"}, {"nan(-)", "nil"},
	{"nanx", "nil"}, {"-nan(7) ", "-nan"}, {"na", "nil"},
	{"0x10", "16"}, {"0X1F", "31"}, {"-0x10", "-16"}, {"0x", "nil"}, {"0xg", "nil"}, {"0x ", "nil"},
	{"x10", "nil"}, {"1x", "nil"}, {"10x10", "nil"}, {"0x1p4", "16"}, {"0x1P-1", "0.5"},
	{"0x.8", "0.5"}, {"0x.8p1", "1"}, {"0x1.", "1"}, {"0x.", "nil"}, {"0x.p1", "nil"},
	{"0x1p", "nil"}, {"0x1p+", "nil"}, {"0x1e3", "483"}, {"0x1p2000", "inf"}, {"0x1p-2000", "0"},
	{"0x1p-1074", "4.9406564584124654e-324"}, {"0x1p-1075", "0"}, {"0x1.8p-1074", "9.8813129168249309e-324"},
	{"0xffffffffffffffff", "1.8446744073709552e+19"}, {"0x7fffffffffffffff", "9.2233720368547758e+18"},
	{"0x20000000000001", "9007199254740992"}, {"0x20000000000003", "9007199254740996"},
	{"0x100000000000000000000000000000000", "3.4028236692093846e+38"}, {"0b1", "nil"}, {"0o7", "nil"},
	{"10\x00abc", "10"}, {"\x0010", "nil"}, {"1\x00", "1"}, {" \x00", "nil"},
	{"999999999999999", "999999999999999"}, {"1000000000000000", "1000000000000000"},
	{"9007199254740991", "9007199254740991"}, {"9007199254740992", "9007199254740992"},
	{"9007199254740993", "9007199254740992"}, {"9007199254740995", "9007199254740996"},
	{"1152921504606846976", "1.152921504606847e+18"}, {"1780000000123456789", "1.7800000001234568e+18"},
	{"9223372036854775807", "9.2233720368547758e+18"}, {"18446744073709551616", "1.8446744073709552e+19"},
	{"4.9406564584124654e-324", "4.9406564584124654e-324"}, {"2.4703282292062327e-324", "0"},
	{"2.4703282292062328e-324", "4.9406564584124654e-324"}, {"2.2250738585072011e-308", "2.2250738585072009e-308"},
	{"1.7976931348623157e308", "1.7976931348623157e+308"}, {"1.7976931348623159e308", "inf"},
	{"0.1", "0.10000000000000001"}, {"123456789012345678901234567890", "1.2345678901234568e+29"},
	{strings.Repeat("1", 10000), "inf"}, {strings.Repeat("0", 10000) + "7", "7"},
	{"0." + strings.Repeat("0", 10000) + "5e10001", "5"}, {"1" + strings.Repeat("0", 10000) + "e-10000", "1"},
	{"0." + strings.Repeat("0", 200000) + "5e200001", "5"}, {"0x" + strings.Repeat("0", 400) + "a", "10"},
	{"1" + strings.Repeat("0", 1000) + "1e-1000", "10"}, {strings.Repeat(" ", 10000) + "7", "7"},
	{"9007199254740993" + strings.Repeat("0", 900) + "1e-901", "9007199254740994"},
}

func TestToNumber(t *testing.T) {
	for _, c := range texts {
		got := "nil"
		if x, ok := number.ToNumber(c.text); ok {
			got = number.Format(".17", 'g', x)
		}
		if got != c.want {
			t.Errorf("ToNumber(%s) = %s, want %s", short(c.text), got, c.want)
		}
	}
}

func TestToNumberOnServer(t *testing.T) {
	client := serverClient(t)
	for _, c := range texts {
		script := `local x = tonumber(ARGV[1]) return x and string.format('%.17g', x) or 'nil'`
		if got := outcome(client.Eval(t.Context(), script, nil, c.text)); got != c.want {
			t.Errorf("tonumber(%s) = %s, want %s", short(c.text), got, c.want)
		}
	}
}

var based = []struct {
	text string
	base int
	want string
}{
	{"10", 16, "16"}, {"0x10", 16, "16"}, {"0X", 16, "nil"}, {"0x", 16, "nil"}, {"ff", 16, "255"},
	{"FF ", 16, "255"}, {" ff", 16, "255"}, {"fg", 16, "nil"}, {"-ff", 16, "1.8446744073709552e+19"},
	{"-1", 16, "1.8446744073709552e+19"}, {"+1", 2, "1"}, {"102", 2, "nil"}, {"777", 8, "511"},
	{"0777", 8, "511"}, {"08", 8, "nil"}, {"zz", 36, "1295"}, {"", 16, "nil"}, {" ", 16, "nil"},
	{"-", 16, "nil"}, {"10000000000000000", 16, "1.8446744073709552e+19"},
	{"ffffffffffffffff", 16, "1.8446744073709552e+19"}, {"fffffffffffffbff", 16, "1.844674407370955e+19"},
	{"1.5", 16, "nil"}, {"1e3", 16, "483"}, {"1\x00z", 8, "1"}, {"20000000000001", 16, "9007199254740992"},
	{"-10000000000000000", 16, "1.8446744073709552e+19"}, {"0x1", 36, "1189"}, {"7", 10, "7"},
}

func TestToNumberBase(t *testing.T) {
	script := `local x = tonumber(ARGV[1], ARGV[2]) return x and string.format('%.17g', x) or 'nil'`
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		for _, c := range based {
			if got := outcome(s.Eval(t.Context(), script, nil, c.text, c.base)); got != c.want {
				t.Errorf("tonumber(%q, %d) = %s, want %s", c.text, c.base, got, c.want)
			}
		}
	})
}

// numbers are whole and broken doubles around every edge that the rules have.
func numbers() []float64 {
	all := []float64{0, math.Copysign(0, -1), 0.1, 0.5, 1.5, 2.5, -0.5, -1.5, 1e-5, 1e-4, 123456.789,
		99999999999999, 100000000000000, 999999999999999, 1e14 - 0.5, 1e15, 1e16, 1e21, 1e22, 1e23, 1e100,
		1.78e18, 1780000000123456768, 5e-324, 2.2250738585072011e-308, 2.2250738585072014e-308,
		math.MaxFloat64, math.Inf(1), number.PositiveNaN, number.NegativeNaN, 34, 92, 10, 13, 65, 255, 256, 300}
	for _, exponent := range []int{31, 32, 43, 52, 53, 54, 60, 61, 62, 63, 64, 65} {
		edge := math.Ldexp(1, exponent)
		all = append(all, edge, math.Nextafter(edge, 0), math.Nextafter(edge, math.Inf(1)), edge-1, edge+1)
	}
	for _, x := range all {
		all = append(all, -x)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		all = append(all, math.Float64frombits(random.Uint64()), math.Trunc(random.NormFloat64()*1e18), random.NormFloat64())
	}
	return all
}

// hexText is x so that tonumber reads exactly x.
func hexText(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return number.ToString(x)
	}
	return strconv.FormatFloat(x, 'x', -1, 64)
}

// printScript prints a number in every way that Lua has, one element a way.
const printScript = `
local x = tonumber(ARGV[1])
local out = {tostring(x), x .. '', '<' .. x .. '|' .. x .. '>', table.concat({x, x}, ','), {x}, x,
  string.len(x), string.sub(x, 1, 3), string.rep(x, 2), string.format('%s', x), string.format('%q', x)}
for i = 2, #ARGV do
  out[#out + 1] = string.format(ARGV[i], x)
end
return out`

var formats = []any{"%d", "%i", "%5d|", "%-5d|", "%05d", "%+d", "% d", "%+ d", "%.3d", "%.0d", "%8.3d", "%08.3d",
	"%-08d|", "%u", "%5u", "%+u", "%x", "%X", "%#x", "%#X", "%08x", "%#08x", "%#020X", "%#2x", "%#-8x|", "%#8x", "%#08o", "%.5x", "%+x", "% x", "%o", "%#o", "%.4o",
	"%g", "%.14g", "%.17g", "%.0g", "%.1g", "%G", "%#g", "%#.3g", "%+g", "% g", "%020g", "%-20g|", "%20g",
	"%f", "%.0f", "%#.0f", "%.1f", "%10.3f", "%-10.1f|", "%+.2f", "%e", "%.0e", "%#.0e", "%E", "%.3e", "%-12.4e|", "%012e",
	"%5.1f%%", "%c", "%3c", "%-3c|", "%s", "%30s", "%-30s|", "%.3s", "%10.3s"}

// binaryScript is what two numbers give.
const binaryScript = `
local a, b = tonumber(ARGV[1]), tonumber(ARGV[2])
local out = {}
for i, x in ipairs({a % b, math.fmod(a, b), math.mod(a, b), ARGV[1] % ARGV[2], math.max(a, b), math.min(a, b), math.floor(a),
  math.ceil(a), math.abs(a), (math.modf(a)), select(2, math.modf(a))}) do
  out[i] = string.format('%.17g', x)
end
out[#out + 1] = tostring(a < b) .. tostring(a <= b) .. tostring(a == b) .. tostring(not (a >= b))
return out`

// play runs all numbers through both scripts and gives each element of each reply to
// check.
func play(t *testing.T, s redis.Scripter, check func(input, got string)) {
	t.Helper()
	eval := func(input, script string, args ...any) {
		reply, err := s.Eval(t.Context(), script, nil, args...).Slice()
		if err != nil {
			t.Fatalf("%s: %v", input, err)
		}
		for i, element := range reply {
			check(fmt.Sprintf("%s, element %d", input, i+1), show(element))
		}
	}
	all := numbers()
	for i, x := range all {
		eval(hexText(x), printScript, append([]any{hexText(x)}, formats...)...)
		for _, by := range []float64{1, 256, 7919, 6e10, -3, 0.1, 4294967296, 0, math.Inf(1), number.PositiveNaN, all[(i*7+3)%len(all)]} {
			eval(hexText(x)+" and "+hexText(by), binaryScript, hexText(x), hexText(by))
		}
	}
}

// The sum of all that the emulator answers, made on a machine whose server answers
// the same (TestNumbersOnServer).
func TestNumbers(t *testing.T) {
	sum := sha1.New()
	n := 0
	play(t, New(), func(input, got string) {
		fmt.Fprintf(sum, "%s: %s\n", input, got)
		n++
	})
	const want = "4fdb655e415d2eb0ea90d64875ec5f4e6d3c22b4"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("%d replies have the sum %s, want %s", n, got, want)
	}
}

func TestNumbersOnServer(t *testing.T) {
	client := serverClient(t)
	var want []string
	play(t, New(), func(_, got string) { want = append(want, got) })
	play(t, client, func(input, got string) {
		if len(want) == 0 {
			t.Fatalf("%s: the server's replies are longer", input)
		}
		if got != want[0] {
			t.Errorf("%s: server %s, emulator %s", input, got, want[0])
		}
		want = want[1:]
	})
}

func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		x    float64
		want int64
	}{
		{0, 0}, {1.9, 1}, {-1.9, -1}, {math.NaN(), math.MinInt64}, {math.Inf(1), math.MinInt64},
		{math.Inf(-1), math.MinInt64}, {1 << 63, math.MinInt64}, {-1 << 63, math.MinInt64},
		{math.Nextafter(1<<63, 0), 9223372036854774784}, {1e300, math.MinInt64},
	} {
		if got := number.Truncate(c.x); got != c.want {
			t.Errorf("Truncate(%v) = %d, want %d", c.x, got, c.want)
		}
		if got := number.FormatInt(c.x); got != strconv.FormatInt(c.want, 10) {
			t.Errorf("FormatInt(%v) = %s, want %d", c.x, got, c.want)
		}
	}
}

// Above 2^53 the % of Lua 5.1 is wrong and fmod is right.
func TestModulo(t *testing.T) {
	if got := number.Mod(1780000000e9, 7919); got != 2560 {
		t.Errorf("Mod = %v, want 2560", got)
	}
	if got := number.Fmod(1780000000e9, 7919); got != 2515 {
		t.Errorf("Fmod = %v, want 2515", got)
	}
	for i := range uint64(100000) {
		random := rand.New(rand.NewPCG(3, i))
		a, b := float64(random.Uint64N(1<<62)), float64(1+random.Uint64N(1<<(1+i%62)))
		if got, want := number.Fmod(a, b), math.Mod(a, b); got != want {
			t.Fatalf("Fmod(%v, %v) = %v, want %v", a, b, got, want)
		}
	}
}

func FuzzToNumber(f *testing.F) {
	client := serverClient(f)
	for _, c := range texts {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const script = `local x = tonumber(ARGV[1]) return x and string.format('%.17g', x) or 'nil'`
		want := outcome(client.Eval(context.Background(), script, nil, text))
		if got := outcome(New().Eval(context.Background(), script, nil, text)); got != want {
			t.Errorf("tonumber(%q) = %s, on the server %s", text, got, want)
		}
	})
}

// onBoth runs test on the emulator and, where there is one, on a server.
func onBoth(t *testing.T, test func(t *testing.T, s redis.Scripter)) {
	t.Run("emulator", func(t *testing.T) { test(t, New()) })
	t.Run("server", func(t *testing.T) { test(t, serverClient(t)) })
}

func serverClient(t testing.TB) *redis.Client {
	client := servers.ForTest(t).Client()
	t.Cleanup(func() { client.Close() })
	return client
}

// outcome is a reply or an error as one text.
func outcome(cmd *redis.Cmd) string {
	if err := cmd.Err(); err != nil {
		return "error " + err.Error()
	}
	return show(cmd.Val())
}

func show(v any) string {
	switch v := v.(type) {
	case []any:
		elements := make([]string, len(v))
		for i, element := range v {
			elements[i] = show(element)
		}
		return "{" + strings.Join(elements, ", ") + "}"
	case string:
		return v
	case error:
		return "error " + v.Error()
	}
	return fmt.Sprintf("%T %v", v, v)
}

func short(text string) string {
	if len(text) > 60 {
		return fmt.Sprintf("%q... of %d bytes", text[:60], len(text))
	}
	return strconv.Quote(text)
}
