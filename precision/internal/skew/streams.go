package skew

import "github.com/tatami-rate/tatami/precision"

// Stream is a silence on a new key from the start of a second, then two seconds of
// calls at an even rate.
type Stream struct {
	SilenceMs, PerSecond int64
}

// Streams are 600: silences of 0 to 990 ms by 10, each with six rates.
func Streams() []Stream {
	var streams []Stream
	for silence := int64(0); silence < 1000; silence += 10 {
		for _, rate := range []int64{1000, 500, 200, 100, 50, 20} {
			streams = append(streams, Stream{silence, rate})
		}
	}
	return streams
}

// Peak is the most units that a script admits of the stream in any second, with a
// limit of 10 a second.
func (s Stream) Peak(script precision.Script, sliding bool, burst int64) int64 {
	const second = 1_780_000_000
	g := &gateways{Script: script, Limit: limit, OffsetsNs: []int64{0}}
	g.Limit.Sliding, g.Limit.Burst = sliding, burst
	var calls []arrival
	for i := range 2 * s.PerSecond {
		calls = append(calls, arrival{second*1e9 + s.SilenceMs*1e6 + i*1e9/s.PerSecond, 0, 1})
	}
	return peak(g.play(calls), 1e9)
}
