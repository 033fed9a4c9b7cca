package whereabouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// oldPool was written by a version of the plugin that stored only sandbox IDs.
const oldPool = `{
	"apiVersion": "whereabouts.cni.cncf.io/v1alpha1",
	"kind": "IPPool",
	"metadata": {"namespace": "kube-system", "name": "172.18.178.192-27", "uid": "u1", "resourceVersion": "7"},
	"spec": {
		"allocations": {
			"4": {"id":"1e88fb5dec7c"},
			"5": {"id":"3484a0e16381"},
			"6": {"id":"c002500f35b0"},
			"7": {"id":"72137a16b0f67"},
			"8": {"id":"8cb063d9cc07"}
		},
		"range": "172.18.178.192/27"
	}
}`

var (
	// comparePools compares pools of the engine.
	comparePools = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})}

	// ofOtherTests are the fields that have their own tests.
	ofOtherTests = cmpopts.IgnoreFields(ipam.Allocation{}, "UnknownField", "Adoption", "Group")
)

func TestPoolOfSandboxIDsIsRead(t *testing.T) {
	p := readPool(json.RawMessage(oldPool))
	if p.broken != nil {
		t.Fatal(p.broken)
	}
	want := ipam.Pool{
		Name:    "kube-system/172.18.178.192-27",
		Range:   netip.MustParsePrefix("172.18.178.192/27"),
		Network: "-",
		Allocations: []ipam.Allocation{
			{Key: "4", IP: netip.MustParseAddr("172.18.178.196"), Token: `{"id":"1e88fb5dec7c"}`, Owner: ipam.Owner{Sandbox: "1e88fb5dec7c"}, Adoption: ipam.NeverAdopted},
			{Key: "5", IP: netip.MustParseAddr("172.18.178.197"), Token: `{"id":"3484a0e16381"}`, Owner: ipam.Owner{Sandbox: "3484a0e16381"}, Adoption: ipam.NeverAdopted},
			{Key: "6", IP: netip.MustParseAddr("172.18.178.198"), Token: `{"id":"c002500f35b0"}`, Owner: ipam.Owner{Sandbox: "c002500f35b0"}, Adoption: ipam.NeverAdopted},
			{Key: "7", IP: netip.MustParseAddr("172.18.178.199"), Token: `{"id":"72137a16b0f67"}`, Owner: ipam.Owner{Sandbox: "72137a16b0f67"}, Adoption: ipam.NeverAdopted},
			{Key: "8", IP: netip.MustParseAddr("172.18.178.200"), Token: `{"id":"8cb063d9cc07"}`, Owner: ipam.Owner{Sandbox: "8cb063d9cc07"}, Adoption: ipam.NeverAdopted},
		},
	}
	got := p.enginePool()
	if got.Capacity == nil || got.Capacity.String() != "30" {
		t.Errorf("capacity = %v, want 30", got.Capacity)
	}
	got.Capacity = nil
	if diff := cmp.Diff(want, got, comparePools); diff != "" {
		t.Errorf("enginePool (-want +got):\n%s", diff)
	}
}

func TestAllocations(t *testing.T) {
	owner := ipam.Owner{Pod: ipam.PodRef{Namespace: "default", Name: "web-0"}, Sandbox: "c1", Interface: "net1"}
	for _, tt := range []struct {
		name       string
		key, entry string
		ip         string // empty: no address
		owner      ipam.Owner
		unreadable string // a part of the reason
	}{
		{"all fields", "7", `{"id":"c1","ifname":"net1","podref":"default/web-0"}`, "10.0.0.7", owner, ""},
		{"unknown fields", "7", `{"id":"c1","ifname":"net1","podref":"default/web-0","since":9007199254740993,"x":{"y":[1]}}`, "10.0.0.7", owner, ""},
		{"no interface", "7", `{"id":"c1","podref":"default/web-0"}`, "10.0.0.7",
			ipam.Owner{Pod: ipam.PodRef{Namespace: "default", Name: "web-0"}, Sandbox: "c1"}, ""},
		{"empty podref", "7", `{"id":"c1","podref":""}`, "10.0.0.7", ipam.Owner{Sandbox: "c1"}, ""},
		{"podref of a name only", "7", `{"id":"c1","podref":"web-0"}`, "10.0.0.7",
			ipam.Owner{Pod: ipam.PodRef{Name: "web-0"}, Sandbox: "c1"}, ""},
		{"fields in another case", "7", `{"ID":"c1","PodRef":"default/web-0"}`, "10.0.0.7", ipam.Owner{}, ""},
		{"null", "7", `null`, "10.0.0.7", ipam.Owner{}, ""},
		{"a text", "7", `"default/web-0"`, "10.0.0.7", ipam.Owner{}, "allocation 7"},
		{"id of a wrong type", "7", `{"id":7,"podref":"default/web-0"}`, "10.0.0.7", ipam.Owner{}, "allocation 7"},
		{"key that is no number", "abc", `{"id":"c1","ifname":"net1","podref":"default/web-0"}`, "", owner, `"abc"`},
		{"wrong in both ways", "abc", `"x"`, "", ipam.Owner{}, "allocation abc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := ipPool{prefix: netip.MustParsePrefix("10.0.0.0/24")}
			got := p.allocation(tt.key, json.RawMessage(tt.entry))
			if !strings.Contains(got.Unreadable, tt.unreadable) || (got.Unreadable == "") != (tt.unreadable == "") {
				t.Errorf("Unreadable = %q, want %q in it", got.Unreadable, tt.unreadable)
			}
			got.Unreadable = ""
			want := ipam.Allocation{Key: tt.key, Owner: tt.owner, Token: tt.entry}
			if tt.ip != "" {
				want.IP = netip.MustParseAddr(tt.ip)
			}
			if diff := cmp.Diff(want, got, comparePools, ofOtherTests); diff != "" {
				t.Errorf("allocation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPoolsThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct{ name, spec, says string }{
		{"no spec", ``, "spec.range"},
		{"spec in another case", `"Spec": {"range": "10.0.0.0/24", "allocations": {}}`, "spec.range"},
		{"spec of a wrong type", `"spec": "10.0.0.0/24"`, "decode"},
		{"range that is no range", `"spec": {"range": "172.xx.xx.192/27", "allocations": {"1": {}}}`, "172.xx.xx.192/27"},
		{"allocations of a wrong type", `"spec": {"range": "10.0.0.0/24", "allocations": ["1"]}`, "decode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			document := `{"metadata": {"namespace": "kube-system", "name": "x"}, ` + tt.spec + `}`
			document = strings.Replace(document, ", }", "}", 1)
			p := readPool(json.RawMessage(document))
			if p.broken == nil || !strings.Contains(p.broken.Error(), tt.says) {
				t.Errorf("broken = %v, want %q in it", p.broken, tt.says)
			}
			if p.pool() != "kube-system/x" {
				t.Errorf("the pool's name is %s, want kube-system/x beside the error", p.pool())
			}
		})
	}
}

// A pool that cannot be read hides no other pools, in any namespace.
func TestPoolsListsEveryPool(t *testing.T) {
	_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": items(
		`{"metadata": {"namespace": "kube-system", "name": "bad"}, "spec": {"range": "?"}}`,
		`{"metadata": {"namespace": "kube-system", "name": "lan-10.0.1.0-24"}, "spec": {"range": "?"}}`,
		oldPool,
		`{"metadata": {"namespace": 7}}`,
		`{"metadata": {"namespace": "openshift-multus", "name": "mynet-10.0.0.0-24"}, "spec": {"range": "10.0.0.0/24", "allocations": {"1": {}}}}`,
		`{"metadata": {"namespace": "kube-system", "name": "by-hand"}, "spec": {"range": "10.0.0.0/24", "allocations": {}}}`,
	)})
	var got []string
	for pool, err := range NewPools(client, Settings{}, atOnce).List(t.Context()) {
		var unreadable *ipam.PoolError
		switch {
		case errors.As(err, &unreadable):
			got = append(got, fmt.Sprintf("unreadable %s, which has %v", unreadable.Pool, unreadable.Range))
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, pool.Name+" in "+pool.Network)
		}
	}
	want := []string{"unreadable kube-system/bad, which has invalid Prefix", "unreadable kube-system/lan-10.0.1.0-24, which has 10.0.1.0/24",
		"kube-system/172.18.178.192-27 in -", "unreadable /, which has invalid Prefix",
		"openshift-multus/mynet-10.0.0.0-24 in mynet", "kube-system/by-hand in "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}

func TestPoolsWithoutTheirResourceAreNotInstalled(t *testing.T) {
	_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": plain(http.StatusNotFound)})
	answers := 0
	for pool, err := range NewPools(client, Settings{}, atOnce).List(t.Context()) {
		answers++
		if !errors.Is(err, ipam.ErrNotInstalled) {
			t.Errorf("List = %+v, %v, want ErrNotInstalled", pool, err)
		}
	}
	if answers != 1 {
		t.Errorf("List yields %d times, want once", answers)
	}
}

func TestListingCanBeLeftEarly(t *testing.T) {
	_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": items(oldPool, oldPool)})
	n := 0
	for _, err := range NewPools(client, Settings{}, atOnce).List(t.Context()) {
		if n++; err != nil {
			t.Error(err)
		}
		break
	}
	if n != 1 {
		t.Errorf("%d pools, want 1", n)
	}
}

// In a readable pool, every key is listed as one allocation. Its token is the entry as stored,
// byte for byte.
func FuzzReadPool(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		p := readPool(data)
		pool := p.enginePool()
		if p.broken != nil {
			return
		}
		var document any
		if strict, err := kjson.UnmarshalStrict(data, &document); err != nil || len(strict) > 0 {
			return // a duplicate key: no API server stores that
		}
		want := allocationsOf(t, data)
		for _, r := range pool.Allocations {
			entry, ok := want[r.Key]
			if !ok {
				t.Fatalf("key %q is not in the pool, or is read twice", r.Key)
			}
			if r.Token != string(entry) {
				t.Errorf("token of %q = %q, want %q", r.Key, r.Token, entry)
			}
			if r.Unreadable == "" && (!r.IP.IsValid() || !p.prefix.Contains(r.IP) && !p.prefix.Addr().Is4In6()) {
				t.Errorf("key %q is the address %v, which is not in %v", r.Key, r.IP, p.prefix)
			}
			delete(want, r.Key)
		}
		if len(want) > 0 {
			t.Errorf("keys %q were lost", slices.Sorted(maps.Keys(want)))
		}
	})
}

// allocationsOf returns the entries of a pool. It does not use the code under test.
func allocationsOf(t *testing.T, data []byte) map[string]json.RawMessage {
	t.Helper()
	var object, spec, entries map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(object["spec"], &spec); err != nil {
		t.Fatal(err)
	}
	if raw := spec["allocations"]; raw != nil {
		if err := json.Unmarshal(raw, &entries); err != nil {
			t.Fatal(err)
		}
	}
	return entries
}
