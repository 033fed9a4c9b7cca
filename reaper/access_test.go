package reaper_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A missing right is reported once, and its backend is not asked to release anything. The
// others are.
func TestBackendWithoutRightsIsLeftAlone(t *testing.T) {
	forbidden := errors.New("forbidden: the account may not patch pools")
	for _, tt := range []struct {
		name   string
		denied reaper.Denied
		want   map[string]report.Fate // of gone-1 and gone-2 of one, and gone-3 of two
		error  string
	}{
		{"one", reaper.Denied{Backends: map[string]error{"one": forbidden}},
			map[string]report.Fate{"2": report.Failed, "3": report.Failed, "10.0.0.2": report.Released}, forbidden.Error()},
		{"a right of all", reaper.Denied{All: forbidden, Backends: map[string]error{"one": errors.New("more")}},
			map[string]report.Fate{"2": report.Failed, "3": report.Failed, "10.0.0.2": report.Failed}, forbidden.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, two := backendtest.NewMemory("one"), backendtest.NewTwoStep("two")
			h := newHarness(nil, two.Backend())
			h.addPods(t, one, "live-1", "gone-1", "gone-2")
			h.addPods(t, two, "live-1", "gone-3")
			store, asked := one.Backend(), 0
			h.backends[0] = wrapped{store, func(ctx context.Context, ws []ipam.Warrant) []error {
				asked++
				return store.Release(ctx, ws)
			}}
			o := h.options()
			questions := 0
			o.Access = func(_ context.Context, backends []string) reaper.Denied {
				questions++
				equal(t, "asked for", backends, []string{"one", "two"})
				return tt.denied
			}
			report, err := reaper.Run(t.Context(), o)
			if err == nil || err.Error() != tt.error {
				t.Errorf("run: %v, want %q", err, tt.error)
			}
			got := outcomes(report)
			for place := range got {
				if _, ok := tt.want[place]; !ok {
					delete(got, place)
				}
			}
			equal(t, "outcomes", got, tt.want)
			equal(t, "denied", report.Run.Denied, true)
			if asked > 0 {
				t.Errorf("the store was asked %d times", asked)
			}
			if questions != 1 || !strings.Contains(strings.Join(report.Warnings, "\n"), tt.error) {
				t.Errorf("%d questions, warnings %q", questions, report.Warnings)
			}
		})
	}
}

// A dry run and a run without anything due ask for no right.
func TestRightsAreAskedForOnlyBeforeAWrite(t *testing.T) {
	for name, change := range map[string]func(*reaper.Options){
		"dry run":     func(o *reaper.Options) { o.Policy.DryRun = new(true) },
		"nothing due": func(o *reaper.Options) { o.Policy.GracePeriod = &policy.Duration{Duration: 1 << 50} },
	} {
		h, _ := memoryHarness(t, "live-1", "gone-1")
		o := h.options()
		change(&o)
		o.Access = func(context.Context, []string) reaper.Denied {
			t.Errorf("%s: asked", name)
			return reaper.Denied{}
		}
		if _, err := reaper.Run(t.Context(), o); err != nil {
			t.Error(err)
		}
	}
}
