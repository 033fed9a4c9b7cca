package whereabouts

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 1, 2. The node of an entry in a slice is in the name of the pool. A name that can be read in
// two ways, or that another network may have, names none.
func TestNodeOfASliceIsInTheNameOfThePool(t *testing.T) {
	const held = `{"1": {"id": "a", "podref": "ns/web", "ifname": "net1"}}`
	pool := func(name string) string {
		return `{"metadata": {"namespace": "kube-system", "name": "` + name + `"}, "spec": {"range": "10.0.0.0/25", "allocations": ` + held + `}}`
	}
	// The nodes n1 and red-n1 may have slices of the NodeSlicePool.
	now := func(slices, nodes string) string {
		return strings.Replace(sliceOfTwo(slices), `"nodeName": "n1"`, `"nodeName": "`+nodes+`"`, 1)
	}
	later := func(slices string) string {
		return strings.Replace(slices, `"namespace": "kube-system"`, `"namespace": "kube-system", "creationTimestamp": "2026-01-01T00:00:00Z"`, 1)
	}
	sliced := single(`, "range": "10.0.0.0/24", "node_slice_size": "/25", "network_name": "red"`)
	whole := single(`, "range": "10.0.0.0/25", "network_name": "red-n1"`)
	for name, tt := range map[string]struct {
		pool        string
		slices      []string
		attachments []string
		want        string
	}{
		"a network_name": {"red-n1-10.0.0.0-25", []string{sliceOfTwo("red")}, []string{sliced}, "n1"},
		"a network_name, and another node has it now":               {"red-n1-10.0.0.0-25", []string{now("red", "n2")}, []string{sliced}, "n1"},
		"a network_name, and no node has it now":                    {"red-n1-10.0.0.0-25", []string{now("red", "")}, []string{sliced}, "n1"},
		"no network_name":                                           {"n1-10.0.0.0-25", []string{sliceOfTwo("conf")}, nil, "n1"},
		"no network_name, and a node that has no slice now":         {"n1-10.0.0.0-25", []string{now("conf", "n2")}, nil, ""},
		"a node with the name of the network before it":             {"red-n1-10.0.0.0-25", []string{now("red", "red-n1")}, []string{sliced}, ""},
		"two networks, of which one's name begins like the other's": {"red-n1-10.0.0.0-25", []string{now("re", ""), now("red", ""), now("red-n", "")}, nil, "n1"},
		"two networks, and either may have given the name":          {"red-n-1-10.0.0.0-25", []string{now("red", ""), now("red-n", "")}, nil, ""},
		"two networks, and the NodeSlicePool of one was made anew": {
			"red-n-1-10.0.0.0-25", []string{now("red", ""), later(now("red-n", ""))}, nil, "",
		},
		"a network whose NodeSlicePool is gone, on a node that exists": {"red-a-n1-10.0.0.0-25", []string{sliceOfTwo("red")}, []string{sliced}, ""},
		"no network_name, or one whose NodeSlicePool is gone": {
			"a-n1-10.0.0.0-25", []string{now("conf", "a-n1"), strings.ReplaceAll(sliceOfTwo("red"), "10.0.0.", "10.9.9.")}, nil, "",
		},
		"another network":               {"blue-n1-10.0.0.0-25", []string{sliceOfTwo("red")}, []string{sliced}, ""},
		"the name of the network alone": {"red-10.0.0.0-25", []string{sliceOfTwo("red")}, []string{sliced}, ""},
		"the range alone":               {"10.0.0.0-25", []string{sliceOfTwo("red")}, []string{sliced}, ""},
		"no node before the range":      {"red--10.0.0.0-25", []string{sliceOfTwo("red")}, []string{sliced}, ""},
		"a range that is no slice":      {"red-n1-10.0.0.0-25", []string{strings.ReplaceAll(sliceOfTwo("red"), "/25", "/26")}, []string{sliced}, ""},
		"an attachment without slices gives out the range by that name": {"red-n1-10.0.0.0-25", []string{sliceOfTwo("red")}, []string{sliced, whole}, ""},
		"a NodeSlicePool of another namespace": {
			"red-n1-10.0.0.0-25", []string{strings.Replace(sliceOfTwo("red"), `"kube-system"`, `"other"`, 1)}, []string{sliced}, "",
		},
		"a pool that is older than the NodeSlicePool": {
			"red-n1-10.0.0.0-25", []string{later(sliceOfTwo("red"))}, []string{sliced}, "",
		},
		"a NodeSlicePool that cannot be decoded": {"red-n1-10.0.0.0-25", []string{sliceOfTwo("red"), strings.Replace(sliceOfTwo("blue"), "10.0.0.128/25", "10.x", 1)}, []string{sliced}, ""},
		"no NodeSlicePool":                       {"red-n1-10.0.0.0-25", nil, []string{sliced}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var attachments []string
			for i, config := range tt.attachments {
				attachments = append(attachments, attachment("lan-"+string(rune('a'+i)), config))
			}
			_, client := newAPI(t, map[string]http.HandlerFunc{
				listAttachments: items(attachments...), "GET ippools": items(pool(tt.pool)), listSlices: items(tt.slices...),
			})
			wantNode(t, NewPools(client, Settings{}, atOnce), tt.want)
		})
	}
	t.Run("NodeSlicePools that may not be listed", func(t *testing.T) {
		_, client := newAPI(t, map[string]http.HandlerFunc{
			"GET ippools": items(pool("red-n1-10.0.0.0-25")),
			listSlices:    refuse(apierrors.NewForbidden(schema.GroupResource{Resource: sliceResource}, "", nil)),
		})
		wantNode(t, NewPools(client, Settings{}, atOnce), "")
	})
}

// wantNode fails the test unless the only allocation is on the node, where alone a pod may get it again.
func wantNode(t *testing.T, b *Pools, want string) {
	t.Helper()
	var a ipam.Allocation
	for p, err := range b.List(t.Context()) {
		if err == nil {
			a = p.Allocations[0]
		}
	}
	adoption := ipam.Adoptable
	if want != "" {
		adoption = ipam.AdoptedOnNode
	}
	if a.Key != "1" || a.Owner.Node != want || a.Adoption != adoption {
		t.Errorf("key %s, node %q, adoption %d; want node %q, adoption %d", a.Key, a.Owner.Node, a.Adoption, want, adoption)
	}
}

// Promise 1, 2. Whatever a later version says with another field, and what belongs to an IPAMClaim, may
// go to a pod on another node.
func TestEntryOfASliceMayBeAdoptedElsewhereIfAFieldMaySayThat(t *testing.T) {
	p := testPool(t, "n1", "10.0.0.0/25")
	p.node = "n1"
	for stored, want := range map[string]ipam.Adoption{
		`{"podref": "ns/web", "ifname": "net1"}`:                              ipam.AdoptedOnNode,
		`{"podref": "ns/web"}`:                                                ipam.NeverAdopted,
		`{"podref": "ns/web", "ifname": "net1", "ipamclaimref": "ns/claim"}`:  ipam.Adoptable,
		`{"podref": "ns/web", "ifname": "net1", "of a later version": "red"}`: ipam.Adoptable,
	} {
		if a := p.allocation("1", []byte(stored)); a.Adoption != want {
			t.Errorf("%s: adoption %d, want %d", stored, a.Adoption, want)
		}
	}
}
