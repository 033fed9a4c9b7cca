package main

import (
	"os"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A user who runs the demo sees that every step turns out as told, without a mistake in its
// texts, and it leaves no file behind.
func TestDemoTurnsOutAsTold(t *testing.T) {
	reaper, err := reap.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	if err := run(t.Context(), &out, reaper); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if strings.Contains(out.String(), "%!") {
		t.Errorf("a text is not formatted:\n%s", out.String())
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
