package generate

import "github.com/tatami-rate/tatami/precision"

// retired are the ids of tests that were taken out. They are not given again.
var retired = map[precision.Script][]int{}

// descriptions say of each flag what goes wrong in a limiter that fails its tests.
var descriptions = map[string]string{
	"BoundaryRetry":    "The wait of window_v1 ends at a boundary at which the call may still not fit: a caller that waits is refused.",
	"BurstOffByOne":    "The allowance is a unit short or long: a rested key admits burst - 1 or burst + 1 units, and with burst 1 none.",
	"ChargedRefusal":   "A refused call is charged or moves the expiry: a caller that polls is kept out for ever.",
	"ClockBackwards":   "A clock that runs back, or that of a second gateway, gives units anew or takes them away.",
	"ClockEdge":        "The clock loses its last digits where doubles grow coarse (2^53, 2^60, 2^61), or in an integer of too few bits.",
	"ClockLimit":       "A clock so late that a sum leaves the range is taken: it wraps or rounds, and the limit is gone.",
	"ClockReset":       "A clock behind the stored window finds its counts. window_v1 is defined to find none; what keeps them is window_v2.",
	"CoarseRetry":      "The wait is cut to whole ms or us: a caller that comes when it is over is refused.",
	"Digits14":         "The state is printed with 14 digits: today's nanoseconds have 19, so up to 50 us are gained or lost with each call.",
	"Drift":            "Rounding that leans to one side adds up over many calls, until the rate is another.",
	"EarliestRetry":    "The wait of a sliding window is that to a boundary, though the call fits earlier: callers wait 48 s instead of 1.",
	"ExponentForm":     "A multiple of 10^8 is written as 1e+08: the expiry is an error, or the state cannot be read back.",
	"FarWait":          "A wait of 2^53 ns (104 days) or more rounds down or overflows. A port in 64-bit integers may answer exact here in place of reply.",
	"FloatSeconds":     "Time is kept in float seconds: an interval that is no whole number loses a unit of the burst at some instants.",
	"FlooredInterval":  "The interval is rounded down: the sustained rate is above amount a period.",
	"GridEdge":         "The clock is rounded to a multiple of 256 ns before it is compared: calls pass early.",
	"HighRate":         "The interval is kept in whole ms or us: above 1000 or 10^6 units a second it is 0, and there is no limit.",
	"IndexWrap":        "The window's index is cut to 32 bits on one side only: when it comes round, counts are lost or kept.",
	"InexactModulo":    "now mod period is computed in doubles that do not hold it: windows begin at wrong instants.",
	"LateRefill":       "A unit is refused at the instant at which it is due, or admitted before it.",
	"LiveChange":       "A limit that changes on a key in use loses what was spent, gives more than the new limit holds, or never recovers.",
	"LongIdle":         "After years without a call a difference overflows: the key is empty, or holds more than its burst.",
	"LooseArgument":    "A bad argument is taken for some number: nan, a negative cost or a limit of 0 then means no limit at all.",
	"LooseState":       "A key that holds something else is taken for a state, and is overwritten or admits.",
	"LostRefill":       "The part of a unit that has grown is dropped at each call: a client that polls fast is starved.",
	"MixedVersions":    "The state that the other version wrote is refused, or is read so that units come early.",
	"NearestRounding":  "The TAT is rounded to the nearest double: below 2^61 that is up to 128 ns early with each call, and with an interval under 128 ns no limit.",
	"NoExpiry":         "A key without an expiry blocks for ever, or never gets one.",
	"NumberReading":    "A text that the server's tonumber reads as a whole number is read as another (010 as 8), or is refused.",
	"PreviousWeight":   "The units of the window before count for nothing or in full: twice the amount passes around a boundary, or too little after it.",
	"RoundedProducts":  "count x time is rounded before it is compared: for long windows a call passes early or late.",
	"SecondEdge":       "A carry between seconds and nanoseconds is lost, or the nanoseconds lose their leading zeros.",
	"ServerClock":      "now_ns that is absent or empty is refused, or is read as 0.",
	"ShortTTL":         "The expiry is cut to whole seconds or ms: the key is gone before its units are back, and all are given anew.",
	"TTLWithoutCost":   "The expiry leaves out the call's own cost: the key is gone before its units are back.",
	"UnfittableStatus": "A call that can never be admitted looks like one to try again, or the other way round.",
	"WideNumbers":      "A product of the largest arguments overflows or rounds: the limit is another.",
	"WindowBoundary":   "A window begins a nanosecond early or late, or with the first call instead of at a multiple of the period.",
	"WrittenLook":      "A cost of 0, which only looks, creates a key, spends, or moves the expiry.",
}
