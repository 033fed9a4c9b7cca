package whereabouts

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// document returns an object of the API group of Whereabouts.
func document(kind, data string) ipam.Document {
	return ipam.Document{APIVersion: "whereabouts.cni.cncf.io/v1alpha1", Kind: kind, Data: []byte(data)}
}

const onePool = `{"metadata": {"namespace": "kube-system", "name": "2001-db8---64"},
	"spec": {"range": "db8::/64", "allocations": {"2": {"id": "c1", "podref": "default/web-0", "ifname": "net1"}}}}`

// lines returns the backend's allocations and errors, one per line.
func lines(t *testing.T, b ipam.Backend) []string {
	t.Helper()
	var all []string
	for pool, err := range b.List(t.Context()) {
		if err != nil {
			all = append(all, "error: "+err.Error())
			continue
		}
		for _, r := range pool.Allocations {
			all = append(all, pool.Name+" "+r.Key+" "+r.IP.String()+" "+r.Owner.Pod.String()+" "+r.Unreadable)
		}
	}
	return all
}

func TestOfflineSortsObjectsOut(t *testing.T) {
	pool := document("IPPool", onePool)
	allocation := document("OverlappingRangeIPReservation", overlappingJSON("10.0.0.4", `{"podref": "default/web-0"}`, `{}`))
	calicos := ipam.Document{APIVersion: "crd.projectcalico.org/v1", Kind: "IPPool", Data: []byte(`{}`)}
	slice := document("NodeSlicePool", `{}`)
	for _, tt := range []struct {
		name string
		docs []ipam.Document
		want []string // backends
		rest []ipam.Document
	}{
		{"both", []ipam.Document{allocation, pool}, []string{"whereabouts", "overlapping"}, nil},
		{"pools alone", []ipam.Document{pool}, []string{"whereabouts"}, nil},
		{"overlapping reservations alone", []ipam.Document{allocation}, []string{"overlapping"}, nil},
		{"neither", []ipam.Document{calicos, slice}, nil, []ipam.Document{calicos}},
		{"others beside", []ipam.Document{calicos, pool, slice}, []string{"whereabouts"}, []ipam.Document{calicos}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, rest := plugin.Offline(Plugins(), tt.docs, policy.Default())
			var names []string
			for _, b := range found {
				names = append(names, b.Name())
			}
			if !slices.Equal(names, tt.want) {
				t.Errorf("backends %v, want %v", names, tt.want)
			}
			if diff := gocmp.Diff(tt.rest, rest); diff != "" {
				t.Errorf("rest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOfflineReadsAsTheListingDoes(t *testing.T) {
	bad := document("IPPool", `{"metadata": {"namespace": "other", "name": "bad"}, "spec": {"range": "10.xx"}}`)
	odd := document("OverlappingRangeIPReservation", `[]`)
	// Only the pool shows that 2001 is a network and not a part of the address.
	settled := document("OverlappingRangeIPReservation", overlappingJSON("2001-db8--2", `{"podref": "default/web-0"}`, `{}`))
	found, _ := plugin.Offline(Plugins(), []ipam.Document{settled, document("IPPool", onePool), bad, odd}, policy.Default())
	want := [][]string{
		{
			"kube-system/2001-db8---64 2 db8::2 default/web-0 ",
			`error: other/bad: spec.range: "10.xx" is not a CIDR`,
		},
		{
			"kube-system/2001-db8--2 2001-db8--2 db8::2 default/web-0 ",
			"error: /: json: cannot unmarshal array into Go value of type whereabouts.object",
		},
	}
	var got [][]string
	for _, b := range found {
		got = append(got, lines(t, b))
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
}

// Network attachments also count offline. What they exclude is not held, and without their list it is
// unknown how full networks are.
func TestOfflineRespectsAttachments(t *testing.T) {
	attached := func(config string) []ipam.Document {
		return []ipam.Document{{APIVersion: "k8s.cni.cncf.io/v1", Kind: "NetworkAttachmentDefinition", Data: []byte(attachment("lan", config))}}
	}
	stored := []ipam.Document{
		document("IPPool", onePool), document("OverlappingRangeIPReservation", overlappingJSON("2001-db8--2", `{"podref": "default/web-0"}`, `{}`)),
	}
	for name, tt := range map[string]struct {
		attachments []ipam.Document
		listed      []string // of both backends
		known       bool
		fails       string
	}{
		"one that excludes all": {attached(single(`, "range": "db8::/64", "network_name": "2001", "exclude": ["db8::/64"]`)), []string{"pool", "pool"}, true, ""},
		"one that is broken":    {attached(single(`, "range": "db8::/64", "network_name": "2001", "exclude": ["?"]`)), []string{"error", "pool", "error", "pool"}, false, ""},
		"no list":               {nil, []string{"pool", "pool"}, false, "the files do not list all network attachments"},
	} {
		documents := slices.Concat(stored, tt.attachments)
		defaults := func(string) any { return nil }
		entries, _ := OfflinePools(documents, defaults)
		reservations, _ := OfflineOverlapping(documents, defaults)
		var listed []string
		for _, b := range []ipam.Backend{entries, reservations} {
			var pools []ipam.Pool
			for pool, err := range b.List(t.Context()) {
				if err != nil {
					listed = append(listed, "error")
					continue
				}
				listed = append(listed, "pool")
				pools = append(pools, pool)
				if a := pool.Allocations[0]; a.Protected != "" {
					t.Errorf("%s: %s: %s is held: %s", name, b.Name(), a.IP, a.Protected)
				}
			}
			if b.Name() != PoolsName {
				continue
			}
			networks, err := b.(ipam.Surveyor).Survey(t.Context(), pools)
			if len(networks) != 1 || networks[0].Known != tt.known || fmt.Sprint(err) != cmp.Or(tt.fails, "<nil>") {
				t.Errorf("%s: networks %+v, error %v", name, networks, err)
			}
		}
		if !slices.Equal(listed, tt.listed) {
			t.Errorf("%s: listed are %q, want %q", name, listed, tt.listed)
		}
	}
}

// Promise 2. Any IPPool that the files lack may have the address of a reservation for its owner.
func TestOfflineHoldsReservationsWithoutAListOfPools(t *testing.T) {
	const lack = "the files do not list all IPPools of Whereabouts, and one may keep it"
	reservation := document("OverlappingRangeIPReservation", overlappingJSON("10.0.0.4", `{"podref": "default/web-0"}`, `{}`))
	attachments := ipam.Document{APIVersion: "k8s.cni.cncf.io/v1", Kind: "NetworkAttachmentDefinitionList", List: true}
	list := document("IPPoolList", "")
	list.List = true
	part := list
	part.More = true
	for name, tt := range map[string]struct {
		pools []ipam.Document
		want  string
	}{
		"none":          {nil, lack},
		"an empty list": {[]ipam.Document{list}, ""},
		"a pool":        {[]ipam.Document{document("IPPool", onePool)}, ""},
		"a part of one": {[]ipam.Document{document("IPPool", onePool), part}, lack},
	} {
		b, _ := OfflineOverlapping(append(tt.pools, reservation, attachments), func(string) any { return nil })
		listed := 0
		for pool, err := range b.List(t.Context()) {
			if listed++; err != nil || pool.Allocations[0].Protected != tt.want {
				t.Errorf("%s: protected by %q, %v, want %q", name, pool.Allocations[0].Protected, err, tt.want)
			}
		}
		if listed != 1 {
			t.Errorf("%s: %d pools", name, listed)
		}
	}
}
