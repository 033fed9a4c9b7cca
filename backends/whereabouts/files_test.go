package whereabouts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
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

// textOf returns a file with the documents.
func textOf(documents []ipam.Document) string {
	var all strings.Builder
	for _, d := range documents {
		switch {
		case d.Is(ipam.DumpGroup, ipam.DumpKind):
			fmt.Fprintf(&all, `{"apiVersion": %q, "kind": %q}`, d.APIVersion, d.Kind)
		case d.List:
			next := map[bool]string{true: "x"}[d.More]
			fmt.Fprintf(&all, `{"apiVersion": %q, "kind": %q, "metadata": {"continue": %q}, "items": []}`, d.APIVersion, d.Kind, next)
		default:
			fmt.Fprintf(&all, `{"apiVersion": %q, "kind": %q, "items": [%s]}`, d.APIVersion, d.Kind+"List", d.Data)
		}
	}
	return all.String()
}

// overFiles returns the backends over files with the documents, and the config that leads to these.
func overFiles(t *testing.T, p policy.Policy, documents ...ipam.Document) ([]ipam.Backend, *rest.Config) {
	t.Helper()
	read, err := dump.Read(t.Context(), strings.NewReader(textOf(documents)), []string{dump.Stdin})
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: "http://files", Transport: read.Server}
	client, err := kube.RawClient(config)
	if err != nil {
		t.Fatal(err)
	}
	backends, _, err := plugin.Open(t.Context(), Plugins(), plugin.Env{Config: config, Client: client, Files: read.Documents, Concurrency: 4}, p)
	if err != nil {
		t.Fatal(err)
	}
	return backends, config
}

func TestFilesReadsAsTheListingDoes(t *testing.T) {
	bad := document("IPPool", `{"metadata": {"namespace": "other", "name": "bad"}, "spec": {"range": "10.xx"}}`)
	odd := document("OverlappingRangeIPReservation", `{"metadata": 7}`)
	// Only the pool shows that 2001 is a network and not a part of the address.
	settled := document("OverlappingRangeIPReservation", overlappingJSON("2001-db8--2", `{"podref": "default/web-0"}`, `{}`))
	found, _ := overFiles(t, policy.Default(), settled, document("IPPool", onePool), bad, odd)
	want := [][]string{
		{
			"kube-system/2001-db8---64 2 db8::2 default/web-0 ",
			`error: other/bad: spec.range: "10.xx" is not a CIDR`,
		},
		{
			"kube-system/2001-db8--2 2001-db8--2 db8::2 default/web-0 ",
			"error: /: json: cannot unmarshal number into Go struct field object.metadata of type struct { kube.Metadata; Annotations map[string]string \"json:\\\"annotations\\\"\" }",
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
func TestFilesRespectsAttachments(t *testing.T) {
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
		found, _ := overFiles(t, policy.Default(), documents...)
		var listed []string
		for _, b := range found {
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

// Promise 2. Any IPPool that the files lack may have the address of a reservation for its owner, and any
// reservation may keep an entry: a young one, or one of a pod that may adopt it.
func TestFilesHoldWhatTheOtherListMayKeep(t *testing.T) {
	attachments := ipam.Document{APIVersion: "k8s.cni.cncf.io/v1", Kind: "NetworkAttachmentDefinitionList", List: true}
	reservation := document("OverlappingRangeIPReservation", overlappingJSON("10.0.0.4", `{"podref": "default/web-0"}`, `{}`))
	pool := document("IPPool", onePool)
	empty := func(kind string) ipam.Document {
		d := document(kind+"List", "")
		d.List = true
		return d
	}
	part := func(kind string) ipam.Document {
		d := empty(kind)
		d.More = true
		return d
	}
	off := policy.Default()
	off.Backends = map[string]policy.Backend{OverlappingName: {Enabled: policy.Off}}
	const noPools = "the files do not list all IPPools of Whereabouts, and one may keep it"
	const noReservations = "the files do not list all OverlappingRangeIPReservations of Whereabouts, and one may keep it"
	for name, tt := range map[string]struct {
		backend int
		policy  policy.Policy
		files   []ipam.Document
		want    string
	}{
		"no list of pools":                     {1, policy.Default(), []ipam.Document{reservation}, noPools},
		"an empty list of pools":               {1, policy.Default(), []ipam.Document{reservation, empty("IPPool")}, ""},
		"a pool":                               {1, policy.Default(), []ipam.Document{reservation, pool}, ""},
		"a part of the pools":                  {1, policy.Default(), []ipam.Document{reservation, pool, part("IPPool")}, noPools},
		"no list of reservations":              {0, policy.Default(), []ipam.Document{pool}, noReservations},
		"an empty list of reservations":        {0, policy.Default(), []ipam.Document{pool, empty("OverlappingRangeIPReservation")}, ""},
		"a part of the reservations":           {0, policy.Default(), []ipam.Document{pool, reservation, part("OverlappingRangeIPReservation")}, noReservations},
		"no list of reservations that are off": {0, off, []ipam.Document{pool}, ""},
	} {
		found, _ := overFiles(t, tt.policy, append(tt.files, attachments)...)
		listed := 0
		for pool, err := range found[tt.backend].List(t.Context()) {
			if listed++; err != nil || pool.Allocations[0].Protected != tt.want {
				t.Errorf("%s: protected by %q, %v, want %q", name, pool.Allocations[0].Protected, err, tt.want)
			}
		}
		if listed != 1 {
			t.Errorf("%s: %d pools", name, listed)
		}
	}
}
