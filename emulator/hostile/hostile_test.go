package hostile

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/tatami-rate/tatami/emulator/number"
)

// Each text stands once, with a number of its own, and reads as the table says.
func TestTable(t *testing.T) {
	numbers, texts := map[int]bool{}, map[string]bool{}
	once := func(number int, text string) {
		t.Helper()
		if numbers[number] || texts[text] {
			t.Errorf("%d, %.40q: the number or the text is there twice", number, text)
		}
		numbers[number], texts[text] = true, true
	}
	for _, a := range Arguments {
		once(a.Number, a.Text)
		x, ok := number.ToNumber(a.Text)
		whole := ok && math.Floor(x) == x && !math.IsInf(x, 0)
		if whole != a.Whole || whole && x != a.Value {
			t.Errorf("%d, %.40q: a server reads %v, %v", a.Number, a.Text, x, ok)
		}
	}
	clear(numbers)
	clear(texts)
	for _, s := range States {
		once(s.Number, s.Text)
		const present = "\x01\xb9\x68\xa0" // 2025-01-01
		if b := []byte(present); s.Number == 91 && (s.Text[:4] != present || binary.BigEndian.Uint32(b) != 1735689600/60) {
			t.Errorf("%q is not of the present minute", s.Text)
		}
	}
	for _, receipt := range Receipts {
		if texts[receipt] {
			t.Errorf("the receipt %q is there twice, or a state", receipt)
		}
		texts[receipt] = true
	}
	for _, clock := range Clocks {
		if texts[clock+" "] {
			t.Errorf("the clock %s is there twice", clock)
		}
		texts[clock+" "] = true
		if !IsClock(clock) {
			t.Errorf("%s is no clock", clock)
		}
	}
}
