package whereabouts

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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

// Promise 1, 2. The node of a reservation is that of the slice with its entry, and of its only slice without
// one. It names none if a pod on any node may adopt it.
func TestReservationIsBoundToTheSliceOfItsEntry(t *testing.T) {
	const web, other = `"1": {"id": "a", "podref": "ns/web", "ifname": "net1"}`, `"1": {"id": "b", "podref": "ns/other", "ifname": "net1"}`
	const plain, claimed, unknown = `{"podref": "ns/web"}`, `{"podref": "ns/web", "ipamclaimref": "ns/claim"}`, `{"podref": "ns/web", "of a later version": 1}`
	const tombstoned = `{"podref":"_ip-reaper/_released"}`
	later := func(pool string) string { // than the reservation
		return strings.Replace(pool, `"namespace": "kube-system"`, `"namespace": "kube-system", "creationTimestamp": "2026-04-01T00:00:00Z"`, 1)
	}
	passed := strings.Replace(sliceOfTwo("red"), `"nodeName": "n1"`, `"nodeName": "n2"`, 1)
	ofN1, bare := poolJSON("red-n1-10.0.0.0-25", "10.0.0.0/25", web), poolJSON("red-n1-10.0.0.0-25", "10.0.0.0/25", "")
	ofN3 := func(entries string) string { return poolJSON("red-n3-10.0.0.0-25", "10.0.0.0/25", entries) }
	sliced := single(`, "range": "10.0.0.0/24", "node_slice_size": "/25", "network_name": "red"`)
	whole := func(config string) []string { return []string{sliced, single(config)} }
	type want struct{ node, also string }
	for name, tt := range map[string]struct {
		spec, annotations          string // of the reservation
		pools, slices, attachments []string
		want                       want
	}{
		"with its entry":                          {pools: []string{ofN1}, want: want{"n1", ""}},
		"and its node is gone":                    {pools: []string{ofN1}, slices: []string{strings.Replace(passed, `"n2"`, `""`, 1)}, want: want{"n1", ""}},
		"and another node has the slice":          {pools: []string{ofN1}, slices: []string{passed}, want: want{"n1", "n2"}},
		"and another node had the slice":          {pools: []string{ofN1, ofN3(other)}, want: want{"n1", "n3"}},
		"and several other nodes":                 {pools: []string{ofN1, ofN3("")}, slices: []string{passed}, want: want{"n1", "n2 n3"}},
		"whose release was cut short":             {spec: tombstoned, annotations: `{"ip-reaper/spec": "{\"podref\": \"ns/web\"}"}`, pools: []string{bare}, want: want{"n1", ""}},
		"without its entry":                       {pools: []string{bare}, want: want{"n1", ""}},
		"beside the entry of another pod":         {pools: []string{poolJSON("red-n1-10.0.0.0-25", "10.0.0.0/25", other)}, want: want{"n1", ""}},
		"without its entry, older than the slice": {pools: []string{later(bare)}},
		"without its entry, of two slices":        {pools: []string{bare, ofN3("")}},
		"with entries in two slices":              {pools: []string{ofN1, ofN3(web)}},
		"with an IPAMClaim":                       {spec: claimed, pools: []string{ofN1}},
		"with an unknown field":                   {spec: unknown, pools: []string{ofN1}},
		"without an IPPool":                       {},
		"beside a range without slices":           {pools: []string{ofN1, poolJSON("red-10.0.0.0-16", "10.0.0.0/16", "")}},
		"beside a range of another network":       {pools: []string{ofN1, poolJSON("blue-10.0.0.0-16", "10.0.0.0/16", "")}, want: want{"n1", ""}},
		"beside a pool with a strange name":       {pools: []string{ofN1, poolJSON("red-of-old", "10.0.0.0/16", "")}},
		"beside a pool that cannot be read":       {pools: []string{ofN1, `{"metadata": {"namespace": "kube-system", "name": "x"}, "spec": 1}`}},
		"an attachment without slices":            {pools: []string{ofN1}, attachments: whole(`, "range": "10.0.0.0/16", "network_name": "red"`)},
		"an attachment of another network":        {pools: []string{ofN1}, attachments: whole(`, "range": "10.0.0.0/16"`), want: want{"n1", ""}},
		"an attachment of other addresses":        {pools: []string{ofN1}, attachments: whole(`, "range": "10.1.0.0/16", "network_name": "red"`), want: want{"n1", ""}},
		"a NodeSlicePool that cannot be decoded":  {pools: []string{ofN1}, slices: []string{passed, strings.Replace(sliceOfTwo("blue"), "10.0.0.128/25", "10.x", 1)}},
		"a NodeSlicePool of another network":      {pools: []string{ofN1}, slices: []string{sliceOfTwo("red"), strings.ReplaceAll(sliceOfTwo("blue"), `"n1"`, `"n4"`)}, want: want{"n1", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.slices == nil {
				tt.slices = []string{sliceOfTwo("red")}
			}
			if tt.attachments == nil {
				tt.attachments = []string{sliced}
			}
			var attachments []string
			for i, config := range tt.attachments {
				attachments = append(attachments, attachment("lan-"+string(rune('a'+i)), config))
			}
			reservation := overlappingJSON("red-10.0.0.1", cmp.Or(tt.spec, plain), cmp.Or(tt.annotations, "{}"))
			_, client := newAPI(t, map[string]http.HandlerFunc{
				listAttachments: items(attachments...), "GET ippools": items(tt.pools...), listSlices: items(tt.slices...),
				"GET overlappingrangeipreservations": items(reservation), listOfClaims: items(),
			})
			pools, b := NewPools(client, Settings{}, atOnce), NewOverlapping(client, Settings{}, atOnce)
			b.share([]ipam.Backend{pools})
			var found []want
			for p, err := range b.List(t.Context()) {
				if err == nil {
					a := p.Allocations[0]
					found = append(found, want{a.Owner.Node, a.AlsoOn})
					if bound := a.Adoption == ipam.AdoptedOnNode; bound != (a.Owner.Node != "") {
						t.Errorf("node %q, adoption %d", a.Owner.Node, a.Adoption)
					}
				}
			}
			if len(found) != 1 || found[0] != tt.want {
				t.Errorf("bound to %q, want %q", found, tt.want)
			}
		})
	}
}

// Promise 1, 2. If the attachments cannot be listed, one may give out the range of a slice in a network of
// that name, so that a pod on any node may adopt the entry and its reservation.
func TestWithoutTheAttachmentsNoSliceBindsItsNode(t *testing.T) {
	forbidden := refuse(apierrors.NewForbidden(schema.GroupResource{Resource: attachmentResource}, "", nil))
	for name, tt := range map[string]struct {
		list http.HandlerFunc
		want ipam.Adoption
	}{
		"listed":    {items(), ipam.AdoptedOnNode},
		"forbidden": {forbidden, ipam.Adoptable},
	} {
		_, client := newAPI(t, map[string]http.HandlerFunc{
			"GET ippools":                        items(poolJSON("red-n1-10.0.0.0-25", "10.0.0.0/25", `"1": {"id": "a", "podref": "ns/web", "ifname": "net1"}`)),
			"GET overlappingrangeipreservations": items(overlappingJSON("red-10.0.0.1", `{"podref": "ns/web"}`, "{}")),
			listAttachments:                      tt.list,
			listSlices:                           items(sliceOfTwo("red")),
		})
		pools, reservations := NewPools(client, Settings{}, atOnce), NewOverlapping(client, Settings{}, atOnce)
		reservations.share([]ipam.Backend{pools})
		for _, b := range []ipam.Backend{pools, reservations} {
			listed := 0
			for p, err := range b.List(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				listed++
				if a := p.Allocations[0]; a.Adoption != tt.want || a.IP.String() != "10.0.0.1" {
					t.Errorf("%s: %s of %s has adoption %d, want %d", name, a.IP, b.Name(), a.Adoption, tt.want)
				}
			}
			if listed != 1 {
				t.Errorf("%s: %d pools of %s", name, listed, b.Name())
			}
		}
	}
}

// Promise 1, 2. Right before its tombstone and after it, a reservation of a slice stays if a pod on another
// node than those that were listed may adopt it by now.
func TestReservationStaysIfItsSliceHasPassed(t *testing.T) {
	pool := func(name, cidr string) string { return poolJSON(name, cidr, "") }
	to := func(network, node string) string {
		return strings.Replace(sliceOfTwo(network), `"n1"`, `"`+node+`"`, 1)
	}
	for name, tt := range map[string]struct {
		pool, slices string
		want         bool
	}{
		"nothing has changed":                    {pool("red-n1-10.0.0.0-25", "10.0.0.0/25"), to("red", "n1"), false},
		"a node that was listed has it":          {pool("red-n3-10.0.0.0-25", "10.0.0.0/25"), to("red", "n3"), false},
		"an ADD on another node has begun":       {pool("red-n2-10.0.0.0-25", "10.0.0.0/25"), to("red", "n1"), true},
		"an ADD without slices has begun":        {pool("red-10.0.0.0-16", "10.0.0.0/16"), to("red", "n1"), true},
		"an ADD in IPv6 with IPv4 in it":         {pool("red---ffff-10.0.0.0-112", "::ffff:10.0.0.0/112"), to("red", "n1"), true},
		"an ADD of other addresses":              {pool("red-n2-10.0.0.128-25", "10.0.0.128/25"), to("red", "n1"), false},
		"an ADD in another network":              {pool("blue-n2-10.0.0.0-25", "10.0.0.0/25"), to("red", "n1"), false},
		"an ADD in another namespace":            {strings.Replace(pool("red-n2-10.0.0.0-25", "10.0.0.0/25"), "kube-system", "other", 1), to("red", "n1"), false},
		"a pool cannot be read":                  {pool("red-n2-10.0.0.0-25", "?"), to("red", "n1"), true},
		"another node has the slice":             {pool("red-n1-10.0.0.0-25", "10.0.0.0/25"), to("red", "n2"), true},
		"another node has it in another network": {pool("red-n1-10.0.0.0-25", "10.0.0.0/25"), to("blue", "n2"), false},
		"a NodeSlicePool cannot be read":         {pool("red-n1-10.0.0.0-25", "10.0.0.0/25"), strings.Replace(to("red", "n1"), "10.0.0.128/25", "10.x", 1), true},
	} {
		for _, adoption := range []ipam.Adoption{ipam.AdoptedOnNode, ipam.Adoptable} {
			a, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": items(tt.pool), listSlices: items(tt.slices)})
			r := ipam.Allocation{Pool: "kube-system/red-10.0.0.1", Key: "red-10.0.0.1", IP: readings("red-10.0.0.1")[0].ip, Adoption: adoption, AlsoOn: "n3"}
			r.Owner = ipam.Owner{Pod: ipam.PodRef{Namespace: "ns", Name: "web"}, Node: "n1"}
			some := []*removal{{r: r}}
			b := NewOverlapping(client, Settings{}, atOnce)
			held, err := b.heldBy(t.Context(), some, time.Now())
			if err == nil {
				err = b.passed(t.Context(), some, held)
			}
			bound := adoption == ipam.AdoptedOnNode
			if err != nil || (held[0] != "") != (tt.want && bound) {
				t.Errorf("%s, adoption %d: held by %q, %v; want it held: %v", name, adoption, held, err, tt.want && bound)
			}
			if listed := slices.Contains(a.calls(), listSlices); listed != bound {
				t.Errorf("%s, adoption %d: NodeSlicePools listed: %v", name, adoption, listed)
			}
		}
	}
	_, client := newAPI(t, map[string]http.HandlerFunc{
		listSlices: refuse(apierrors.NewForbidden(schema.GroupResource{Resource: sliceResource}, "", nil)),
	})
	r := ipam.Allocation{Adoption: ipam.AdoptedOnNode}
	if err := NewOverlapping(client, Settings{}, atOnce).passed(t.Context(), []*removal{{r: r}}, []string{""}); err == nil {
		t.Error("NodeSlicePools that may not be listed count as unchanged")
	}
}
