package controls

import (
	"errors"
	"slices"
	"testing"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/vectors"
	"github.com/tatami-rate/tatami/vectors/generate"
)

// flagOf is the flag of the vectors that names a control's fault.
var flagOf = map[string]string{
	"TAT rounded to nearest, interval 1100 ns":                   "NearestRounding",
	"TAT rounded to nearest, interval 100 ns":                    "NearestRounding",
	"state through tostring, 14 digits":                          "Digits14",
	"interval floored":                                           "FlooredInterval",
	"ttl floored to seconds":                                     "ShortTTL",
	"ttl forgets the cost":                                       "TTLWithoutCost",
	"burst off by one":                                           "BurstOffByOne",
	"refill floored on each call":                                "LostRefill",
	"% for fmod in the window's index":                           "InexactModulo",
	"window's test with rounded products":                        "RoundedProducts",
	"refused calls are charged":                                  "ChargedRefusal",
	"retry rounded down to ms":                                   "CoarseRetry",
	"a clock behind resets the window":                           "ClockBackwards",
	"a window's key without its period":                          "OtherPeriod",
	"a window's key without its period, rolling deploy":          "OtherPeriod",
	"expiry kept at every write":                                 "KeptExpiry",
	"expiry without the 2 s":                                     "ShortTTL",
	"a foreign number is taken for a TAT":                        "ForeignNumber",
	"credit is dropped by a write":                               "Credit",
	"credit is written as a double":                              "Credit",
	"the last TAT follows each write":                            "Credit",
	"the last TAT stays":                                         "Credit",
	"a key with credit expires by its TAT":                       "Credit",
	"a key with credit keeps its expiry by its TAT":              "Credit",
	"interval rounded down to the grid":                          "FlooredInterval",
	"a rested key's clock rounded down to the grid":              "GridEdge",
	"burst off by one, in one double":                            "BurstOffByOne",
	"wait counted from the grid point before the clock":          "GridEdge",
	"ttl of one double floored to seconds":                       "ShortTTL",
	"expiry of one double kept at every write":                   "KeptExpiry",
	"a window's expiry without its margin":                       "ShortTTL",
	"a window's counts live for its own window":                  "ShortTTL",
	"the usual refund: the TAT less units x interval":            "UsualRefund",
	"interval floored, of several limits":                        "FlooredInterval",
	"burst off by one, of several limits":                        "BurstOffByOne",
	"the limits that fit are charged for a call that is refused": "AllOrNothing",
	"the wait of the last limit":                                 "AllOrNothing",
	"a settlement is dropped with the call that is refused":      "Settlement",
	"expiry of several limits kept at every write":               "KeptExpiry",
	"a key that was given back to expires by its TAT":            "Credit",
	"the receipt without its credit":                             "Receipt",
}

// Every control fails a vector whose flag names its fault.
func TestVectorsRejectEveryControl(t *testing.T) {
	controls := list()
	for _, c := range controls {
		t.Run(c.fault, func(t *testing.T) {
			flag, ok := flagOf[c.fault]
			if !ok {
				t.Fatal("no flag is named for this control")
			}
			source, err := c.source()
			if err != nil {
				t.Fatal(err)
			}
			port, err := generate.NewServerPort(t.Context(), emulator.New(), source, "control")
			if err != nil {
				t.Fatal(err)
			}
			text, err := vectors.Files.ReadFile(string(c.script) + ".json")
			if err != nil {
				t.Fatal(err)
			}
			f, err := generate.Read(text)
			if err != nil {
				t.Fatal(err)
			}
			played, failed := 0, 0
			try := func(flags []string, play func(*generate.Group, generate.Port) error, g *generate.Group) {
				if !slices.Contains(flags, flag) {
					return
				}
				played++
				err := play(g, port)
				if errors.Is(err, generate.ErrDiffers) {
					failed++
				} else if err != nil {
					t.Error(err)
				}
			}
			for _, g := range f.Groups {
				for _, test := range g.Tests {
					try(test.Flags, test.Play, &g)
				}
				for _, stream := range g.Streams {
					try(stream.Flags, stream.Play, &g)
				}
			}
			if failed == 0 {
				t.Errorf("all %d vectors with the flag %s pass", played, flag)
			}
			t.Logf("%s: %d of %d fail", flag, failed, played)
		})
	}
	if len(flagOf) != len(controls) {
		t.Errorf("%d flags are named for %d controls", len(flagOf), len(controls))
	}
}
