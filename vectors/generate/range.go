package generate

import (
	"fmt"
	"strconv"
	"strings"
)

// Range is a number, or the least and the greatest that it may be: `7`, `0..60000`.
type Range string

// newRange is the range of these ends.
func newRange(least, greatest int64) Range {
	if least == greatest {
		return Range(strconv.FormatInt(least, 10))
	}
	return Range(fmt.Sprintf("%d..%d", least, greatest))
}

// ends are the least and the greatest number.
func (r Range) ends() (least, greatest int64, err error) {
	low, high, isRange := strings.Cut(string(r), "..")
	if !isRange {
		high = low
	}
	if least, err = strconv.ParseInt(low, 10, 64); err == nil {
		greatest, err = strconv.ParseInt(high, 10, 64)
	}
	return least, greatest, err
}

// has tells whether a number is in the range.
func (r Range) has(n int64) bool {
	least, greatest, err := r.ends()
	return err == nil && least <= n && n <= greatest
}

// below tells whether all of the range is below n.
func (r Range) below(n int64) bool {
	_, greatest, err := r.ends()
	return err == nil && greatest < n
}

// isIn tells whether a text is a number of the range.
func isIn(text string, r Range) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && r.has(n)
}

// around is the least range that has both.
func around(r, s Range) (Range, error) {
	least, greatest, err := r.ends()
	if err != nil {
		return "", err
	}
	least2, greatest2, err := s.ends()
	return newRange(min(least, least2), max(greatest, greatest2)), err
}
