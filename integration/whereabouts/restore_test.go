package whereabouts_test

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// Released allocations come back as they were, including fields that the program does not know, and
// then they are the plugin's again (promise 10).
func TestWhatWasReleasedComesBack(t *testing.T) {
	f := newFixture(t)
	f.runs("live", f.add(lan, "live")...)
	f.add(lan, "web-0")
	f.addTo(lan, "web-1", "net2")
	f.add(plugin.Network{NetworkName: "blue", Range: "fd00::/64"}, "web-0")
	f.patch("overlappingrangeipreservations", "10.0.0.2", "application/merge-patch+json",
		`{"metadata":{"labels":{"a":"b"},"annotations":{"c":"<&>"}}}`)
	records, before := f.records(), f.store()
	f.release(records, 2)

	back := []string{
		"10.0.0.0-24/1 present", "10.0.0.0-24/2 back", "10.0.0.0-24/3 back", "10.0.0.1 present", "10.0.0.2 back", "10.0.0.3 back",
		"blue-fd00---64/1 back", "blue-fd00--1 back",
	}
	f.wantLines(back, f.restore(f.Config, records))
	f.wantReborn(before)

	for i, line := range back {
		back[i] = strings.Replace(line, " back", " present", 1)
	}
	versions := f.store().versions
	f.wantLines(back, f.restore(f.Config, records))
	f.wantSame("of a restoration of what is there", versions, f.store().versions)

	// web-0's ADD adopts what was restored, and web-1's DEL frees only its own.
	f.wantAddresses(f.add(lan, "web-0"), "10.0.0.2")
	f.del(lan, "web-1", "sandbox-3", "net2")
	left := f.store()
	if left.content["10.0.0.0-24/3"] != "" || left.content["10.0.0.3"] != "" {
		t.Error("a DEL does not free what was restored")
	}
	if left.content["10.0.0.0-24/2"] == "" || left.content["10.0.0.2"] == "" {
		t.Error("a DEL frees what it is not about")
	}
}

// A real ADD between our read of the pool and our write wins (promise 10).
func TestAddBetweenLookAndWriteOfARestoration(t *testing.T) {
	f := newFixture(t)
	bare := plugin.Network{Range: "10.0.0.0/24", DisableOverlapping: true}
	f.add(bare, "web-0")
	f.add(bare, "web-1")
	records := f.records()
	f.release(records, 0)
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
