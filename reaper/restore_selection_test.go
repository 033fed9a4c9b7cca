package reaper_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A restore takes the names that pools and history print, and what one ADD made comes back
// together. What the journal does not have is a mistake, and nothing is written.
func TestRestoreOfASelection(t *testing.T) {
	record := func(backend, pool, key, ip, pod, node string) ipam.Record {
		return ipam.Record{
			Backend: backend, Pool: pool, Key: key, IP: ip, Stored: []byte(`{}`),
			Owner: ipam.EntryOwner{Namespace: "default", Pod: pod, Sandbox: "sandbox-" + pod, Interface: "net1", Node: node},
		}
	}
	records := []ipam.Record{
		record("stored", "ns/edge-10.0.0.0-28", "1", "10.0.0.1", "web-1", "n1"),
		record("stored", "ns/b", "2", "10.0.1.2", "web-2", "n2"),
		record("reserved", "ns/10.0.1.2", "10.0.1.2", "10.0.1.2", "web-2", "n2"),
		record("stored", "10.30.0.0/26", "3", "10.30.0.3", "web-3", "n2"), // the block is gone
		record("stored", "10.30.0.64/26", "4", "10.30.0.64", "web-4", "n3"),
		record("stored", "fd00::/64", "4", "fd00::4", "web-4", "n3"),
	}
	edge, b := poolOf(), poolOf()
	edge.Name, edge.Range = "ns/edge-10.0.0.0-28", netip.MustParsePrefix("10.0.0.0/28")
	b.Name, b.Range = "ns/b", netip.MustParsePrefix("10.0.1.0/28")
	stored := surveyor{Backend: namedStore{fixedStore{edge, b}, "stored"}, networks: []ipam.Network{
		{Name: "edge", Range: edge.Range, Pools: []string{edge.Name}},
		{Name: "blocks", Range: netip.MustParsePrefix("10.30.0.0/24"), Pools: []string{"10.30.0.0/26", "10.30.0.64/26"}},
		{Name: "spare", Range: netip.MustParsePrefix("10.9.0.0/24")},
	}}
	pools := func(names ...string) judge.Selection { return judge.Selection{Pools: names} }
	nodes := func(names ...string) judge.Selection { return judge.Selection{Nodes: names} }
	for _, tt := range []struct {
		name      string
		selection judge.Selection
		want      string // the records, each as the last letter of its pod
		mistake   string
		hint      string
	}{
		{"everything", judge.Selection{}, "122344", "", ""},
		{"a network", pools("edge"), "1", "", ""},
		{"a pool without its namespace, and what is bound to it", pools("b"), "22", "", ""},
		{"a reservation, and what is bound to it", pools("10.0.1.2"), "22", "", ""},
		{"the blocks of a network, and what the same ADD made", pools("blocks"), "344", "", ""},
		{"a CIDR around a block that is gone", pools("10.30.0.0/25"), "344", "", ""},
		{"a CIDR around pools", pools("10.0.0.0/23"), "122", "", ""},
		{"a node", nodes("n2"), "223", "", ""},
		{"a node and a pool", judge.Selection{Nodes: []string{"n2"}, Pools: []string{"10.30.0.0/24"}}, "3", "", ""},
		{"a pool that the journal does not have", pools("edge", "edgy"), "", `no pool named "edgy" in the journal of run run-1`, "did you mean edge?"},
		{"a network that the journal does not have", pools("spare"), "", `no pool named "spare" in the journal of run run-1`,
			"nothing was put back; history --run ID lists what the journal has"},
		{"a node that the journal does not have", nodes("n9"), "", `no node named "n9" in the journal of run run-1`, "did you mean n1 or n2 or n3?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(stored, namedStore{fixedStore{}, "reserved"})
			rep, err := reaper.Restore(t.Context(), h.restoreOptions(func(o *reaper.RestoreOptions) {
				o.Journal.Run.ID, o.Journal.Records, o.Selection, o.DryRun = "run-1", records, tt.selection, true
			}))
			var mistake *ipam.InputError
			if errors.As(err, &mistake) != (tt.mistake != "") || mistake != nil && (err.Error() != tt.mistake || mistake.Hint != tt.hint) {
				t.Fatalf("%v, want %q (%s)", err, tt.mistake, tt.hint)
			}
			if tt.mistake != "" {
				return
			}
			got := ""
			for _, e := range rep.Entries {
				got += e.Owner.Pod[len("web-"):]
			}
			equal(t, "records", got, tt.want)
			equal(t, "selection", rep.Run.Selection.String(), tt.selection.String())
		})
	}
}
