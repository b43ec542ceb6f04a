// Package number holds every rule by which the Lua 5.1 of a Redis server on amd64
// turns text into numbers and numbers into text, and the two operations on numbers
// that other Lua machines do in another way. It needs nothing but the standard
// library.
package number

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// ToNumber is tonumber(text) as the server reads it: strtod of C in the C locale,
// with white space allowed on both sides. "inf", "nan", "1e3" and "0x1p4" are
// numbers, "010" is 10, "1e400" is infinite, and text ends at its first NUL. The
// result is false where tonumber answers nil.
func ToNumber(text string) (float64, bool) {
	if n := len(text); n > 0 && n <= 15 { // below 10^15: exact
		x, digits := int64(0), 0
		for digits < n && IsDecimal(text[digits]) {
			x = x*10 + int64(text[digits]-'0')
			digits++
		}
		if digits == n {
			return float64(x), true
		}
	}
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	text = trimSpaceLeft(text)
	x, n := parseFloat(text)
	// Lua gives a number that ends before an x to strtoul, which then never gets
	// further than strtod did: strtod of the server knows hexadecimal itself.
	return x, n > 0 && trimSpaceLeft(text[n:]) == ""
}

// ToNumberBase is tonumber(text, base) for 2 <= base <= 36 except 10: strtoul of C.
func ToNumberBase(text string, base int) (float64, bool) {
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	text = trimSpaceLeft(text)
	sign := 0
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign = 1
	}
	i := sign
	if base == 16 && len(text) > i+2 && text[i] == '0' && text[i+1]|0x20 == 'x' && DigitValue(text[i+2]) < 16 {
		i += 2
	}
	first := i
	n, overflow := uint64(0), false
	for ; i < len(text) && DigitValue(text[i]) < base; i++ {
		high, low := bits.Mul64(n, uint64(base))
		sum, carry := bits.Add64(low, uint64(DigitValue(text[i])), 0)
		overflow = overflow || high != 0 || carry != 0
		n = sum
	}
	if i == first || trimSpaceLeft(text[i:]) != "" {
		return 0, false
	}
	if overflow {
		return float64(uint64(math.MaxUint64)), true
	}
	if sign == 1 && text[0] == '-' {
		n = -n
	}
	return float64(n), true
}

// parseFloat is strtod of C: the number at the start of text, and how many bytes it
// takes; 0 bytes where there is none.
func parseFloat(text string) (float64, int) {
	i := 0
	negative := false
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		negative = text[i] == '-'
		i++
	}
	x, n := parseMagnitude(text[i:])
	if n == 0 {
		return 0, 0
	}
	if negative {
		x = math.Copysign(x, -1)
	}
	return x, i + n
}

func parseMagnitude(text string) (float64, int) {
	switch {
	case hasPrefixFold(text, "infinity"):
		return math.Inf(1), len("infinity")
	case hasPrefixFold(text, "inf"):
		return math.Inf(1), len("inf")
	case hasPrefixFold(text, "nan"):
		i := len("nan")
		if i < len(text) && text[i] == '(' {
			end := i + 1
			for end < len(text) && (text[end] == '_' || DigitValue(text[end]) < 36) {
				end++
			}
			if end < len(text) && text[end] == ')' {
				i = end + 1
			}
		}
		return PositiveNaN, i
	}
	base, perDigit, prefix, exponentMark, i := 10, 1, "0.", byte('e'), 0
	if hasPrefixFold(text, "0x") {
		at := 2
		if len(text) > at && text[at] == '.' {
			at++
		}
		if len(text) > at && DigitValue(text[at]) < 16 {
			base, perDigit, prefix, exponentMark, i = 16, 4, "0x.", 'p', 2
		}
	}
	// The value is 0.digits * base^point, with no zero at the start of digits.
	var digits []byte
	point, seenPoint, seenDigit := 0, false, false
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' && !seenPoint {
			seenPoint = true
			continue
		}
		if DigitValue(c) >= base {
			break
		}
		seenDigit = true
		if c != '0' || len(digits) > 0 {
			digits = append(digits, c)
			if !seenPoint {
				point++
			}
		} else if seenPoint {
			point--
		}
	}
	if !seenDigit {
		return 0, 0
	}
	exponent := point * perDigit
	if i < len(text) && text[i]|0x20 == exponentMark {
		at, sign := i+1, 1
		if at < len(text) && (text[at] == '-' || text[at] == '+') {
			if text[at] == '-' {
				sign = -1
			}
			at++
		}
		if at < len(text) && IsDecimal(text[at]) {
			e := 0
			for ; at < len(text) && IsDecimal(text[at]); at++ {
				e = min(e*10+int(text[at]-'0'), math.MaxInt32)
			}
			exponent += sign * e
			i = at
		}
	}
	if len(digits) == 0 {
		return 0, i
	}
	// Far outside of a double's range on either side; strconv stops reading an
	// exponent at five digits.
	exponent = max(-9999, min(exponent, 9999))
	// The only error left is a value out of range, for which x is infinite.
	x, _ := strconv.ParseFloat(prefix+string(digits)+string(exponentMark)+strconv.Itoa(exponent), 64)
	return x, i
}

// ToString is tostring(x): "%.14g" of C.
func ToString(x float64) string {
	if math.Abs(x) < 1e14 && x == math.Trunc(x) && !(x == 0 && math.Signbit(x)) {
		return strconv.FormatInt(int64(x), 10)
	}
	if text, ok := notFinite(x); ok {
		return text
	}
	return strconv.FormatFloat(x, 'g', 14, 64)
}

// FormatInt is string.format('%d', x): the whole part of x, and the least 64-bit
// integer for nan and whatever does not fit.
func FormatInt(x float64) string {
	return strconv.FormatInt(Truncate(x), 10)
}

// Truncate is the integer that a Lua number becomes in a reply: toward zero, and the
// least 64-bit integer for nan and whatever does not fit (the cvttsd2si of amd64).
func Truncate(x float64) int64 {
	if x >= -1<<63 && x < 1<<63 {
		return int64(x)
	}
	return math.MinInt64
}

// truncateUnsigned is the cast to unsigned long that %x, %o and %u make on amd64.
func truncateUnsigned(x float64) uint64 {
	if x >= 1<<63 {
		return uint64(Truncate(x-1<<63)) ^ 1<<63
	}
	return uint64(Truncate(x))
}

// Mod is a % b: a - floor(a / b) * b, every step rounded, so inexact above 2^53.
func Mod(a, b float64) float64 { return propagateNaN(ModWhole(a, b), a, b) }

// ModWhole is Mod where none of the three is NaN, as with whole numbers, b above 0.
func ModWhole(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }

// Fmod is math.fmod(a, b): the exact remainder with the sign of a.
func Fmod(a, b float64) float64 {
	if a > 0 && a < 1<<63 && b > 0 && b < 1<<63 {
		if float64(int64(a)) == a && float64(int64(b)) == b {
			return FmodWhole(a, b)
		}
	}
	return propagateNaN(math.Mod(a, b), a, b)
}

// FmodWhole is Fmod of whole numbers, a from 0 to below 2^63 and b above 0.
func FmodWhole(a, b float64) float64 {
	if a < b {
		return a
	}
	return float64(int64(a) % int64(b))
}

// The two nans. NegativeNaN is what an invalid operation yields on amd64; it is printed
// as "-nan".
var (
	PositiveNaN = math.Float64frombits(0x7ff8000000000000)
	NegativeNaN = math.Float64frombits(0xfff8000000000000)
)

// propagateNaN gives a nan the sign that it has on amd64: that of the first operand
// that is one, and minus where none is.
func propagateNaN(x, a, b float64) float64 {
	switch {
	case x == x:
		return x
	case a != a:
		return a
	case b != b:
		return b
	}
	return NegativeNaN
}

// Format is C's sprintf for the conversions d i o u x X e E f g G of
// string.format. options is what stands between % and the conversion: flags, width
// and precision, all checked.
func Format(options string, conversion byte, x float64) string {
	switch conversion {
	case 'd', 'i':
		if options == "" {
			return FormatInt(x)
		}
		return fmt.Sprintf("%"+options+"d", Truncate(x))
	case 'o', 'u', 'x', 'X':
		return formatUnsigned(options, conversion, truncateUnsigned(x))
	}
	if text, ok := notFinite(x); ok {
		flags, width, _, _ := SplitOptions(options)
		if !math.Signbit(x) {
			if strings.Contains(flags, "+") {
				text = "+" + text
			} else if strings.Contains(flags, " ") {
				text = " " + text
			}
		}
		if conversion == 'E' || conversion == 'G' {
			text = strings.ToUpper(text)
		}
		if strings.Contains(flags, "-") {
			width = "-" + width
		}
		return fmt.Sprintf("%"+width+"s", text)
	}
	if conversion|0x20 == 'g' && !strings.Contains(options, ".") {
		options += ".6" // without it Go prints the shortest form
	}
	return fmt.Sprintf("%"+options+string(conversion), x)
}

func formatUnsigned(options string, conversion byte, n uint64) string {
	flags, width, precision, precise := SplitOptions(options)
	flags = strings.NewReplacer("+", "", " ", "").Replace(flags) // for signed ones only
	if n == 0 {
		flags = strings.ReplaceAll(flags, "#", "") // 0 gets no 0x
	}
	// C counts 0x in the width, and Go does not when it fills with zeros.
	if strings.Contains(flags, "#") && strings.Contains(flags, "0") && !strings.Contains(flags, "-") &&
		!precise && conversion|0x20 == 'x' {
		filled, _ := strconv.Atoi(width) // 0 where there is none
		width, precise, precision = "", true, strconv.Itoa(max(filled-2, 0))
	}
	format := "%" + flags + width
	if precise {
		format += "." + precision
	}
	if conversion == 'u' {
		conversion = 'd'
	}
	return fmt.Sprintf(format+string(conversion), n)
}

// SplitOptions takes the options of a conversion apart; precise is whether there is a
// point, after which precision may be empty for 0.
func SplitOptions(options string) (flags, width, precision string, precise bool) {
	flags = options[:len(options)-len(strings.TrimLeft(options, "-+ #0"))]
	width, precision, precise = strings.Cut(options[len(flags):], ".")
	return flags, width, precision, precise
}

func notFinite(x float64) (string, bool) {
	switch {
	case math.IsInf(x, 1):
		return "inf", true
	case math.IsInf(x, -1):
		return "-inf", true
	case x == x:
		return "", false
	case math.Signbit(x):
		return "-nan", true
	}
	return "nan", true
}

// IsDecimal tells whether c is one of the digits 0 to 9.
func IsDecimal(c byte) bool { return '0' <= c && c <= '9' }

// DigitValue is the value of c as a digit of base 36, and 36 where it is none.
func DigitValue(c byte) int {
	switch {
	case IsDecimal(c):
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'z':
		return int(c|0x20-'a') + 10
	}
	return 36
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// trimSpaceLeft drops what isspace of C calls white space.
func trimSpaceLeft(text string) string {
	return strings.TrimLeft(text, " \t\n\v\f\r")
}
