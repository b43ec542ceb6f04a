package servers

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Architectures32 are those of the 32-bit servers that `make servers-32` makes.
var Architectures32 = []string{"armhf", "i386"}

// ForTest32 starts the 32-bit server of an architecture and stops it when the test ends.
// Without one the test is skipped by name, or fails when REQUIRE_SERVERS is 1.
func ForTest32(tb TB, architecture string) *Server {
	tb.Helper()
	folder := cmp.Or(os.Getenv("SERVERS_32"), "/var/cache/tatami/servers-32")
	binary := filepath.Join(folder, "redis-server-"+architecture)
	if _, err := os.Stat(binary); err != nil {
		Lacks(tb, fmt.Errorf("no 32-bit server, `make servers-32` makes it: %w", err))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	server, err := StartBinary(ctx, binary)
	if err != nil {
		tb.Fatalf("a 32-bit server, `make servers-32` makes it: %v", err)
	}
	tb.Cleanup(server.Stop)
	return server
}
