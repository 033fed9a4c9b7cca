package hostlocal_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A plugin that hangs holds up a run once, and not for each lease: the DELs that have begun are
// called off after half a minute, and no other begins. Every lease goes, the report tells of
// each DEL that failed, and the real plugin gives the addresses again.
func TestPluginThatHangsHoldsUpARunOnce(t *testing.T) {
	t.Parallel()
	const leases, atOnce = 13, 8 // a whole /28
	w := newWorld(t, span{Subnet: "10.1.0.0/28"})
	for i := range leases {
		w.given(pods, sandboxAgain("web", byte(i)), dead)
	}
	w.found = t.TempDir()
	calls := w.path("calls")
	script := fmt.Sprintf("#!/bin/sh\necho called >> %s\nexec sleep 600\n", calls)
	w.must(os.WriteFile(w.found+"/host-local", []byte(script), 0o700))
	begun := time.Now()
	report := w.run(reap.ExitPartial)
	if took := time.Since(begun); took > 2*time.Minute {
		t.Errorf("the run took %v, want half a minute", took)
	}
	if report.Summary.Released != leases {
		t.Errorf("%d are released, want %d", report.Summary.Released, leases)
	}
	for _, e := range report.Entries {
		if !strings.Contains(e.Error, "its DEL failed") {
			t.Errorf("of %s, the report says %q", e.IP, e.Error)
		}
	}
	called, err := os.ReadFile(calls)
	w.must(err)
	if n := strings.Count(string(called), "called"); n < 1 || n > atOnce {
		t.Errorf("the plugin was called %d times, want at most %d", n, atOnce)
	}
	w.given(pods, sandbox("next"), 0)
}
