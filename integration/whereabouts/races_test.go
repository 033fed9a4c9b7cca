package whereabouts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A pod comes while the run lists. A list of pods from before the list of pools would lack it
// (promise 3).
func TestPodThatComesWhileTheReaperLists(t *testing.T) {
	for _, tt := range []struct {
		name string
		hold string // the first request of that kind
		do   func(f *fixture)
		want []string
		may  []string // the report may have these too: stores are listed at the same time
	}{{
		name: "between the list of pools and that of pods",
		hold: "list pods",
		do:   func(f *fixture) { f.pod("web-0", pending) },
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 inUse PodPresent kept"),
	}, {
		name: "and gets an address just before the list of pools",
		hold: "list ippools",
		do:   func(f *fixture) { f.runs("web-1", f.add(lan, "web-1")...) },
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
		may:  both("10.0.0.0-24/2", "10.0.0.2", "10.0.0.2 web-1 inUse PodPresent kept"),
	}} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.add(lan, "web-0")
			var during store
			got := f.reapWhile(tt.hold, func() {
				tt.do(f)
				during = f.store()
			})
			certain := slices.DeleteFunc(slices.Clone(got.lines), func(line string) bool { return slices.Contains(tt.may, line) })
			f.wantLines(tt.want, certain)
			f.wantStore(during.without(got.lines))
			if got.exit != reap.ExitDone {
				t.Errorf("exit code %d\n%s", got.exit, got.stderr)
			}
		})
	}
}

// A real ADD between our read of the pool and our write wins (promise 10).
func TestAddBetweenLookAndWriteOfARestoration(t *testing.T) {
	f := newFixture(t)
	bare := plugin.Network{Range: "10.0.0.0/24", DisableOverlapping: true}
	f.add(bare, "web-0")
	f.add(bare, "web-1")
	records := f.records()
	f.release()
	p, gate := f.toReaper, proxy.NewGate()
	p.Before(proxy.Nth(1, proxy.On("patch ippools")), gate.Hook)
	ended := make(chan []string, 1)
	go func() { ended <- f.restore(p.Config(f.Config), records) }()
	<-gate.Arrived()
	f.add(bare, "new-0")
	gate.Open()
	f.wantLines([]string{"10.0.0.0-24/1 its place is taken by shop/new-0", "10.0.0.0-24/2 back"}, <-ended)
	if got := f.store().content["10.0.0.0-24/1"]; !strings.Contains(got, "shop/new-0") {
		t.Errorf("the address that the ADD got is now of %s", got)
	}
}
