package kit_test

import (
	"os"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit"
)

// TestMain has the binary be the client of the fault tests where they start it as that.
func TestMain(m *testing.M) {
	if url := os.Getenv(serverVariable); url != "" {
		os.Exit(writer(url))
	}
	kit.Main(m, kit.Options{Sets: []kit.Set{kit.Calico}})
}
