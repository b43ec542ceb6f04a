package loader

import "strings"

// tagOf is the part of a Redis key that chooses its place: what is between the first '{' and
// the '}' after it, or the whole key when there is none or nothing between.
func tagOf(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	if closed && tag != "" {
		return tag
	}
	return key
}

// slotOf is a key's slot in a cluster: CRC16 (XMODEM) of its tag, modulo 16384.
func slotOf(key string) uint16 {
	var crc uint16
	for _, b := range []byte(tagOf(key)) {
		crc ^= uint16(b) << 8
		for range 8 {
			top := crc >> 15
			crc = crc<<1 ^ top*0x1021
		}
	}
	return crc % 16384
}
