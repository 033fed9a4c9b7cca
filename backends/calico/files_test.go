package calico

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A form is how a file contains blocks and handles.
type form struct {
	name     string
	document func(k kind, id, value string) ipam.Document
}

// forms are the forms that contain both blocks and handles.
var forms = []form{
	{"etcd", func(k kind, id, value string) ipam.Document {
		return ipam.Document{Key: etcdKey(k, id), Data: []byte(value)}
	}},
	{"crd.projectcalico.org/v1", customResource},
	{"projectcalico.org/v3", func(k kind, id, value string) ipam.Document {
		d := customResource(k, id, value)
		d.APIVersion = "projectcalico.org/v3"
		return d
	}},
}

// customResource returns one. A handle's has the ID in its spec.
func customResource(k kind, id, value string) ipam.Document {
	name := map[kind]string{blocks: "IPAMBlock", handles: "IPAMHandle"}[k]
	if k == handles {
		value = fmt.Sprintf(`{"handleID": %q, %s`, id, value[1:])
	}
	return ipam.Document{APIVersion: "crd.projectcalico.org/v1", Kind: name, Data: fmt.Appendf(nil,
		`{"metadata": {"name": %q}, "spec": %s}`, resourceName(k, id), value)}
}

// withReservations returns the documents with what tells that there are no IPReservations: an empty list, or
// the nodes in a dump of etcd, which has all of Calico's resources.
func withReservations(docs ...ipam.Document) []ipam.Document {
	none := ipam.Document{APIVersion: "crd.projectcalico.org/v1", Kind: "IPReservationList", List: true}
	if slices.ContainsFunc(docs, func(d ipam.Document) bool { return d.Key != "" }) {
		none = ipam.Document{Key: resourcePrefix + "nodes/n", Data: []byte(`{}`)}
	}
	return append(slices.Clone(docs), none)
}

// listed returns a line for each allocation or error in the documents.
func listed(t *testing.T, docs ...ipam.Document) []string {
	t.Helper()
	found := newFiles(withReservations(docs...), 4)
	var lines []string
	for pool, err := range found.List(t.Context()) {
		if err != nil {
			lines = append(lines, "error: "+err.Error())
			continue
		}
		for _, r := range pool.Allocations {
			what := r.IP.String()
			if r.EmptyHandle {
				what = r.Key
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprint(pool.Name, " ", what, " ", r.Owner.Pod, " ", r.Unreadable)))
		}
	}
	return lines
}

func TestFilesKnowsHandlesThatAreThere(t *testing.T) {
	const (
		ofBoth  = `{"block": {"10.0.0.0/30": 2}, "deleted": false}`
		ofMore  = `{"block": {"10.0.0.0/30": 2, "fd00::/122": 1}, "deleted": false}`
		missing = "its sandbox may have another address in block fd00::/122, which is not in the files: add it to the dump"
	)
	web0 := []string{"10.0.0.0/30 10.0.0.0 default/web-0", "10.0.0.0/30 10.0.0.2 default/web-0"}
	const web1 = "10.0.0.0/30 10.0.0.3 default/web-1"
	for _, f := range forms {
		block := f.document(blocks, "10.0.0.0/30", threeOfFour)
		for _, tt := range []struct {
			name string
			docs []ipam.Document
			want []string
		}{
			{"none", []ipam.Document{block}, append(slices.Clone(web0), web1)},
			{"one with addresses", []ipam.Document{f.document(handles, "net.a", ofBoth), block}, append(slices.Clone(web0), web1)},
			{"one with an address in a block that is not there", []ipam.Document{f.document(handles, "net.a", ofMore), block},
				[]string{web0[0] + " " + missing, web0[1] + " " + missing, web1}},
			{"one without an address", []ipam.Document{f.document(handles, "net.c", `{"block": {"10.0.0.0/30": 1}}`), block},
				append(slices.Clone(web0), web1, "handles net.c /")},
			{"one whose block is not there", []ipam.Document{f.document(handles, "net.c", `{"block": {"fd00::/122": 1}}`), block},
				append(slices.Clone(web0), web1, "handles net.c / "+missing)},
			{"one twice, and changed", []ipam.Document{f.document(handles, "net.c", `{"block": {"fd00::/122": 1}}`), f.document(handles, "net.c", `{"block": {}}`)},
				[]string{"handles net.c /"}},
		} {
			t.Run(f.name+", "+tt.name, func(t *testing.T) {
				if diff := cmp.Diff(tt.want, listed(t, tt.docs...)); diff != "" {
					t.Errorf("allocations (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Without a handle, nothing connects an address with a block that cannot be read.
func TestFilesABrokenBlockSpoilsNoOther(t *testing.T) {
	broken := strings.NewReplacer("10.0.0.0/30", "10.0.0.4/30", `"unallocated":[1]`, `"unallocated":[]`).Replace(threeOfFour)
	got := listed(t,
		ipam.Document{Key: etcdKey(blocks, "10.0.0.4/30"), Data: []byte(broken)},
		ipam.Document{Key: etcdKey(blocks, "10.0.0.8/30"), Data: []byte(`{"cidr":`)},
		ipam.Document{File: "f", Place: "document 3", Data: []byte(`{"cidr": "10.0.0.0/30", "allocations": [null]}`)},
		ipam.Document{APIVersion: "projectcalico.org/v3", Kind: "IPAMBlock", File: "f", Place: "item 2", Data: []byte(`{"metadata": 7}`)},
		ipam.Document{Key: etcdKey(blocks, "10.0.0.0/30"), Data: []byte(threeOfFour)},
	)
	want := []string{
		"error: block /calico/ipam/v2/assignment/ipv4/block/10.0.0.4-30: ordinal 1 is neither allocated nor unallocated",
		"error: block /calico/ipam/v2/assignment/ipv4/block/10.0.0.8-30: decode: unexpected end of JSON input",
		"error: block f: document 3: the block has 1 allocations for 4 addresses",
		"error: block f: item 2: decode: unexpected end of JSON input",
		"10.0.0.0/30 10.0.0.0 default/web-0", "10.0.0.0/30 10.0.0.2 default/web-0", "10.0.0.0/30 10.0.0.3 default/web-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("allocations (-want +got):\n%s", diff)
	}
}

func TestFilesNamesNodesAsKubernetesDoes(t *testing.T) {
	node := ipam.Document{Key: "/calico/resources/v3/projectcalico.org/nodes/node-1",
		Data: []byte(`{"kind": "Node", "spec": {"orchRefs": [{"nodeName": "worker-1", "orchestrator": "k8s"}]}}`)}
	odd := ipam.Document{Key: "/calico/resources/v3/projectcalico.org/nodes/odd", Data: []byte(`7`)}
	block := ipam.Document{Data: []byte(threeOfFour)}
	for _, tt := range []struct {
		name string
		docs []ipam.Document
		want string
	}{
		{"with the node", []ipam.Document{node, odd, block}, "worker-1"},
		{"without", []ipam.Document{odd, block}, "node-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := newFiles(tt.docs, 4)
			listed := 0
			for pool, err := range found.List(t.Context()) {
				listed++
				if err != nil || pool.Allocations[0].Owner.Node != tt.want || pool.Node != tt.want {
					t.Errorf("node %q, of the block %q, %v, want %q", pool.Allocations[0].Owner.Node, pool.Node, err, tt.want)
				}
			}
			if listed != 1 {
				t.Errorf("%d blocks were listed, want 1", listed)
			}
		})
	}
}

// Promise 2. Clusters may share an etcd: without all of Calico's nodes, any address may be that of another cluster.
func TestFilesOfEtcdHoldAllWithoutNodes(t *testing.T) {
	stored := ipam.Document{Key: etcdKey(blocks, "10.0.0.0/30"), Data: []byte(threeOfFour)}
	node := ipam.Document{Key: resourcePrefix + "nodes/node-1", Data: []byte(`{"kind": "Node"}`)}
	const lack = "the files do not list all nodes of Calico, and one may keep it"
	for name, tt := range map[string]struct {
		docs []ipam.Document
		want string
	}{
		"the nodes":              {[]ipam.Document{stored, node, {List: true}}, ""},
		"no node":                {[]ipam.Document{stored}, lack},
		"a part of the keys":     {[]ipam.Document{stored, node, {List: true, More: true}}, lack},
		"the value of a block":   {[]ipam.Document{{Data: []byte(threeOfFour)}}, lack},
		"a custom resource":      {[]ipam.Document{customResource(blocks, "10.0.0.0/30", threeOfFour)}, ""},
		"a part of another list": {[]ipam.Document{customResource(blocks, "10.0.0.0/30", threeOfFour), {APIVersion: "v1", Kind: "EventList", List: true, More: true}}, ""},
	} {
		held := 0
		for pool := range newFiles(tt.docs, 4).List(t.Context()) { //nolint:errcheck // it tells of missing IPReservations
			for _, a := range pool.Allocations {
				held++
				if a.Protected != tt.want {
					t.Errorf("%s: %s is protected by %q, want %q", name, a.IP, a.Protected, tt.want)
				}
			}
		}
		if held != 3 {
			t.Errorf("%s: %d addresses, want 3", name, held)
		}
	}
}

// Files without a block or a handle do not tell that there is none.
func TestFilesWithoutCalicoAreUnread(t *testing.T) {
	for name, tt := range map[string]struct {
		doc   ipam.Document
		reads bool // it is for Calico, whatever its kind
		found bool // a block
	}{
		"an affinity":                    {ipam.Document{Key: "/calico/ipam/v2/host/node-1/ipv4/block/10.0.0.0-30", Data: []byte(`{}`)}, true, false},
		"another key beside blocks":      {ipam.Document{Key: "/calico/ipam/v2/assignment/ipv4/pool/x", Data: []byte(`{}`)}, true, false},
		"another program's key":          {ipam.Document{Key: "/registry/pods/default/web-0"}, false, false},
		"a pool of Calico":               {ipam.Document{APIVersion: "crd.projectcalico.org/v1", Kind: "IPPool"}, false, false},
		"a block of another API group":   {ipam.Document{APIVersion: "example.com/v1", Kind: "IPAMBlock"}, false, false},
		"a block with a kind of its own": {ipam.Document{Kind: "Block", Data: []byte(threeOfFour)}, false, false},
		"a document without a kind":      {ipam.Document{Data: []byte(`{"cidr": "10.0.0.0/30"}`)}, false, false},
		"only the value of a block":      {ipam.Document{Data: []byte(`{"cidr": 1, "allocations": 2}`)}, true, true},
	} {
		unread := false
		for _, err := range newFiles([]ipam.Document{tt.doc}, 4).List(t.Context()) {
			unread = unread || ipam.IsUnread(err)
		}
		if got := reads(tt.doc); got != tt.reads || unread == tt.found {
			t.Errorf("%s: read %t, unread %t", name, got, unread)
		}
	}
}

// After calico 6997: a dump of etcd has the endpoint of a pod whose address is due.
func TestFilesReadsEndpoints(t *testing.T) {
	const prefix = "/calico/resources/v3/projectcalico.org/workloadendpoints/default/"
	found := newFiles([]ipam.Document{
		{Data: []byte(threeOfFour)},
		{Key: prefix + "node--1-k8s-web--0-eth0", Data: fmt.Appendf(nil, `{"spec":{"containerID":%q,"ipNetworks":["10.0.0.0/32"]}}`, sandbox(1))},
		{Key: prefix + "node--1-k8s-broken-eth0", Data: []byte(`{`)},
	}, 4)
	of := func(pod string) *ipam.Allocation {
		return &ipam.Allocation{Owner: ipam.Owner{Pod: ipam.PodRef{Namespace: "default", Name: pod}, Node: "node-1", Sandbox: sandbox(1)}}
	}
	got := found.Endpoints(t.Context(), []*ipam.Allocation{of("web-0"), of("gone"), of("broken")})
	if want := (ipam.Endpoint{Name: "node--1-k8s-web--0-eth0", Sandbox: sandbox(1), Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.0")}}); !cmp.Equal(want, got[0], cmpopts.EquateComparable(netip.Addr{})) {
		t.Errorf("the endpoint is %+v, want %+v", got[0], want)
	}
	if got[1].Name != "" || got[1].Err != nil || got[2].Err == nil {
		t.Errorf("none, and one that cannot be decoded: %+v", got[1:])
	}
}

func TestFilesSayWhyNoneOfCalicoIsListed(t *testing.T) {
	block := func(group, fields string) ipam.Document {
		d := customResource(blocks, "10.0.0.0/30", fields)
		d.APIVersion = group
		return d
	}
	const v1, v3 = "crd.projectcalico.org/v1", "projectcalico.org/v3"
	information := func(group string, ready bool) ipam.Document {
		return ipam.Document{APIVersion: group, Kind: "ClusterInformation", Data: fmt.Appendf(nil,
			`{"metadata": {"name": "default"}, "spec": {"datastoreReady": %t}}`, ready)}
	}
	locked := ipam.Document{Key: clusterKey, Data: information(v1, false).Data}
	other := strings.Replace(threeOfFour, "1800000000000000007", "1800000000000000008", 1)
	for _, tt := range []struct {
		name string
		docs []ipam.Document
		want string
	}{
		{"both API groups, with the same contents", []ipam.Document{block(v1, threeOfFour), block(v3, threeOfFour)}, ""},
		{"both API groups, which differ", []ipam.Document{block(v1, threeOfFour), block(v3, other)}, "of the API groups crd.projectcalico.org and projectcalico.org that differ"},
		{"a datastore in use", []ipam.Document{block(v1, threeOfFour), information(v1, true)}, ""},
		{"a locked datastore", []ipam.Document{block(v1, threeOfFour), information(v1, false)}, "datastoreReady is false"},
		{"a locked datastore, and one without blocks", []ipam.Document{block(v1, threeOfFour), information(v1, false), information(v3, true)}, "datastoreReady is false"},
		{"the same in another group that is locked", []ipam.Document{block(v1, threeOfFour), block(v3, threeOfFour), information(v1, false), information(v3, true)}, ""},
		{"a locked etcd", []ipam.Document{{Key: etcdKey(blocks, "10.0.0.0/30"), Data: []byte(threeOfFour)}, locked}, "datastoreReady is false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := listed(t, tt.docs...)
			failed := len(got) == 1 && strings.HasPrefix(got[0], "error: ")
			if failed != (tt.want != "") || !strings.Contains(got[0], tt.want) {
				t.Errorf("listed %q, want an error with %q", got, tt.want)
			}
		})
	}
}
