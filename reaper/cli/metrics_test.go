package cli

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// Of two wrong flags, the error always names the same.
func TestFirstOfTwoWrongFlagsIsNamed(t *testing.T) {
	for range 100 {
		_, err := metricsTo("http://127.0.0.1:9", "metrics.prom", judge.Selection{Nodes: []string{"n1"}})
		if err == nil || !strings.HasPrefix(err.Error(), "--push-url: ") {
			t.Fatalf("metricsTo = %v, want --push-url to be named", err)
		}
	}
}
