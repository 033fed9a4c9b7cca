package whereabouts_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Released allocations come back as they were, with fields that the program does
// not know, and then they are the plugin's again (promise 10).
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

	// sandbox-2 is web-0's: its DEL gives back what was restored, and its ADD what
	// it had.
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

// A real ADD between our look at the pool and our write wins, whether it takes the
// address or another one (promise 10).
func TestAddBetweenLookAndWriteOfARestoration(t *testing.T) {
	for _, tt := range []struct {
		name string
		hold string
		adds int
		want []string
	}{
		{"of the address", "patch ippools", 1, []string{"10.0.0.0-24/1 its place is taken by shop/new-0", "10.0.0.0-24/2 back"}},
		{"of both addresses", "patch ippools", 2, []string{
			"10.0.0.0-24/1 its place is taken by shop/new-0", "10.0.0.0-24/2 its place is taken by shop/new-1"}},
		{"before the look", "get ippools", 1, []string{"10.0.0.0-24/1 its place is taken by shop/new-0", "10.0.0.0-24/2 back"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			bare := plugin.Network{Range: "10.0.0.0/24", DisableOverlapping: true}
			f.add(bare, "web-0")
			f.add(bare, "web-1")
			records := f.records()
			f.release(records, 0)
			p, gate := f.toReaper, proxy.NewGate()
			p.Before(proxy.Nth(1, proxy.On(tt.hold)), gate.Hook)
			ended := make(chan []string, 1)
			go func() { ended <- f.restore(p.Config(f.Config), records) }()
			<-gate.Arrived()
			for i := range tt.adds {
				f.add(bare, "new-"+strconv.Itoa(i))
			}
			gate.Open()
			f.wantLines(tt.want, <-ended)
			if got := f.store().content["10.0.0.0-24/1"]; !strings.Contains(got, "shop/new-0") {
				t.Errorf("the address that the ADD got is now of %s", got)
			}
		})
	}
}

// An entry that its pool would not take does not keep the others away. Old versions
// of the plugin wrote such.
func TestEntryThatBreaksTheSchemaIsRefusedAlone(t *testing.T) {
	f := newFixture(t)
	f.writePool("10.0.0.0-24", "10.0.0.0/24", `{"9":{"id":"c9","podref":"shop/x"}}`)
	record := func(key, stored string) ipam.Record {
		return ipam.Record{Backend: "whereabouts", Pool: "kube-system/10.0.0.0-24", Key: key, IP: "10.0.0." + key, Stored: json.RawMessage(stored)}
	}
	got := f.restore(f.Config, []ipam.Record{
		record("4", `{"id":"c4","podref":"shop/web-0"}`), record("5", `{"id":"c5"}`), record("55", `{"id":"c55","podref":"shop/web-1"}`),
	})
	if len(got) != 3 || got[0] != "10.0.0.0-24/4 back" || !strings.Contains(got[1], "spec.allocations.5.podref") || got[2] != "10.0.0.0-24/55 back" {
		t.Errorf("Restore = %s", strings.Join(got, "\n"))
	}
}
