package calico_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Blocks and handles that break what Calico relies on (35): reported and never
// written, since a write would make them worse; and all else goes on (36).
func TestCorruptObjectsAreReportedAndStay(t *testing.T) {
	const sound = `{"cidr":"CIDR","affinity":"host:node-1","allocations":[0,null,1,null],"unallocated":[3,1],` +
		`"attributes":[{"handle_id":"k8s-pod-network.a","secondary":{"namespace":"shop","pod":"gone"}},` +
		`{"handle_id":"k8s-pod-network.b","secondary":{"namespace":"shop","pod":"gone"}}],` +
		`"sequenceNumber":9,"sequenceNumberForAllocation":{"0":3,"2":4},"strictAffinity":false}`
	corruptions := []struct {
		name, old, now string
		etcd           bool // the API server would not store it
	}{
		{"attribute out of range", "[0,null,1,null]", "[0,null,2,null]", false},
		{"attribute below range", "[0,null,1,null]", "[0,null,-1,null]", false},
		{"attribute without an address", "[0,null,1,null]", "[0,null,0,null]", false},
		{"free twice", "[3,1]", "[3,1,1]", false},
		{"free and allocated", "[3,1]", "[3,1,2]", false},
		{"free out of range", "[3,1]", "[3,1,4]", false},
		{"free below range", "[3,1]", "[3,-1]", false},
		{"neither free nor allocated", "[3,1]", "[3]", false},
		{"more allocations than addresses", "[0,null,1,null]", "[0,null,1,null,null]", false},
		{"fewer allocations than addresses", "[0,null,1,null]", "[0,null,1]", false},
		{"CIDR of no block", `"CIDR"`, `"10.31.0.1/30"`, false},
		{"CIDR that is none", `"CIDR"`, `"node-1"`, false},
		{"no CIDR", `"cidr":"CIDR",`, "", true},
		{"owner that is no text", `"pod":"gone"`, `"pod":7`, true},
		{"sequence number that is none", `"sequenceNumber":9`, `"sequenceNumber":"9"`, true},
		{"sequence number with a fraction", `"sequenceNumber":9`, `"sequenceNumber":9.5`, true},
		{"sequence number below zero", `"2":4`, `"2":-4`, true},
		{"ordinal with a fraction", "[3,1]", "[3,1.5]", true},
		{"half of it", `"affinity"`, `}`, true},
		{"nothing", sound, "", true},
		{"no object", sound, "[]", true},
	}
	each(t, func(s *fixture) {
		// An address that is sound, and one of two whose other one is in a block
		// that is not.
		_, fine := s.leak("gone")
		_, two := s.dual("gone")
		s.editBlock(two[1], func(b map[string]any) { b["unallocated"] = b["unallocated"].([]any)[1:] })
		var broken []string
		put := func(kind calico.Kind, name, content string) {
			s.must(s.Put(s.Context(), kind, name, content))
			broken = append(broken, name)
		}
		broken = append(broken, s.BlockName(s.blockOf(two[1])))
		for i, c := range corruptions {
			if c.etcd && s.Etcd == nil {
				continue
			}
			content := strings.Replace(sound, c.old, c.now, 1)
			if content == sound {
				t.Fatalf("%s: no %s in the block", c.name, c.old)
			}
			cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 31, byte(i), 0}), 30)
			put(calico.Block, s.BlockName(cidr), strings.ReplaceAll(content, "CIDR", cidr.String()))
		}
		// A block under the name of another: what is released would be looked for
		// there.
		misplaced := netip.MustParsePrefix("10.32.0.0/30")
		put(calico.Block, s.BlockName(netip.MustParsePrefix("10.32.0.4/30")), strings.ReplaceAll(sound, "CIDR", misplaced.String()))
		for _, id := range []string{"k8s-pod-network.a", "k8s-pod-network.b"} {
			s.must(s.PutHandle(s.Context(), id, map[netip.Prefix]int{misplaced: 1}))
		}
		stray := fmt.Sprintf("k8s-pod-network.%064x", 1)
		put(calico.Handle, s.HandleName(stray), map[bool]string{
			false: `{"block":{"node-1":1},"deleted":false,"handleID":"` + stray + `"}`,
			true:  `{"block":{"10.30.0.0/26":"1"},"deleted":false}`,
		}[s.Etcd != nil])

		before := s.state()
		r := s.mustReap(reap.ExitPartial, releaseNow+"pods: {unnamed: release, finished: release, superseded: release}\n")
		want := map[string]string{fine.String(): "orphan PodAbsent released", two[0].String(): "held Unreadable kept"}
		if diff := cmp.Diff(want, lines(r)); diff != "" {
			s.Errorf("report (-want +got):\n%s", diff)
		}
		s.wantReleased(before, r)
		if b := backendOf(r); b.Status != "partial" || b.Message == "" {
			s.Errorf("the backend is %s: %q, want it to be partial", b.Status, b.Message)
		}
		// All are named in the report, by what the datastore calls them. The log counts
		// those that are equal.
		failures := strings.Join(backendOf(s.mustReap(reap.ExitPartial, releaseNow)).Failures, "\n")
		for _, name := range broken {
			if !strings.Contains(failures, name) {
				s.Errorf("%s is not reported:\n%s", name, failures)
			}
		}
		s.wantReleased(s.state(), new(reap.Report))
	})
}

// backendOf is what a report says of Calico as a whole.
func backendOf(r *reap.Report) reap.Backend {
	for _, b := range r.Backends {
		if b.Name == "calico" {
			return b
		}
	}
	return reap.Backend{}
}

// A number above 2^53, the escapes of another encoder, spaces, and fields that no
// version of today knows come out byte for byte (44).
func TestFieldsFromTheFutureStayAsTheyAre(t *testing.T) {
	const (
		other = `"leased":9007199254740993,"weight":1.50e-7,"tags":["<&>","\u2028\u00e9"],"more":{"b":{"a":[ ]},"é":false,"c":null}`
		goes  = `{"handle_id":"k8s-pod-network.GONE","secondary":{"pod":"gone","namespace":"shop"}, ` + other + `}`
		stays = `{"handle_id":"k8s-pod-network.STAYS","secondary":{"namespace":"default","pod":"bystander"}, ` + other + `}`
	)
	gone, alive := fmt.Sprintf("%064x", 1), fmt.Sprintf("%064x", 2)
	ids := strings.NewReplacer("GONE", gone, "STAYS", alive, "CIDR", "10.31.0.0/29")
	each(t, func(s *fixture) {
		cidr := netip.MustParsePrefix("10.31.0.0/29")
		block := func(allocations, unallocated, attributes, sequence, sequences string) string {
			return ids.Replace(`{ "later": {` + other + `}, "cidr":"CIDR","strictAffinity":false,` +
				`"affinity":"host:node-1", "allocations":` + allocations + `,"unallocated":` + unallocated + `,` +
				`"attributes":` + attributes + `,"sequenceNumber":` + sequence + `, "sequenceNumberForAllocation":{` + sequences + `},` +
				`"affinityClaimTime":"2026-01-01T00:00:00Z","deleted":false }`)
		}
		s.must(s.Put(s.Context(), calico.Block, s.BlockName(cidr), block(
			"[1,null,0,1,null,0,null,null]", "[7,4,1,6]", "[ "+goes+" , "+stays+"]", "1800000000000000009",
			`"0":1800000000000000001,"1":5,"2":1800000000000000007,"3":1800000000000000003,"5":1800000000000000005`)))
		// A handle of addresses here and elsewhere, of which these are the last.
		handle := func(blocks string) string {
			return ids.Replace(`{"block":{`+blocks+`}, `+other+`,"deleted":false`) +
				map[bool]string{true: `}`, false: `,"handleID":"k8s-pod-network.` + gone + `"}`}[s.Etcd != nil]
		}
		s.must(s.Put(s.Context(), calico.Handle, s.HandleName("k8s-pod-network."+gone), handle(`"10.99.0.0/26":1, "CIDR":2`)))
		before := s.state()
		r := s.mustReap(reap.ExitDone, releaseNow)
		want := map[string]string{}
		for i, line := range []string{"inUse PodPresent kept", "", "orphan PodAbsent released", "inUse PodPresent kept", "", "orphan PodAbsent released"} {
			if line != "" {
				want[fmt.Sprintf("10.31.0.%d", i)] = line
			}
		}
		if diff := cmp.Diff(want, lines(r)); diff != "" {
			s.Errorf("report (-want +got):\n%s", diff)
		}
		s.wantReleased(before, r)
		if s.Etcd == nil {
			return // the API server has a form of its own for all that it stores
		}
		// Allocations, queue and attributes are written anew; nothing else is.
		wantBlock := block("[0,null,null,0,null,null,null,null]", "[7,4,1,6,2,5]", "["+ids.Replace(stays)+"]", "1800000000000000010",
			`"0":1800000000000000001,"1":5,"3":1800000000000000003`)
		o, err := s.Get(s.Context(), calico.Block, s.BlockName(cidr))
		s.must(err)
		if diff := cmp.Diff(wantBlock, o.Raw); diff != "" {
			s.Errorf("block (-want +got):\n%s", diff)
		}
		o, err = s.Get(s.Context(), calico.Handle, s.HandleName("k8s-pod-network."+gone))
		s.must(err)
		if diff := cmp.Diff(handle(`"10.99.0.0/26":1`), o.Raw); diff != "" {
			s.Errorf("handle (-want +got):\n%s", diff)
		}
	})
}

// The block of an article of 2018 about leaked addresses: written by a Calico that
// named no pods, only sandboxes. What becomes of those is a question of policy; and
// even then nothing goes that a pod shows, nor anything at all while a pod is
// there that should show an address and shows none.
func TestBlockWithoutOwners(t *testing.T) {
	cidr := netip.MustParsePrefix("100.112.209.128/26")
	const (
		release       = releaseNow + "pods: {unnamed: release}\n"
		held, absent  = "held OwnerUnknown kept", "orphan SandboxAbsent released"
		first, second = "100.112.209.130", "100.112.209.144"
	)
	sandboxOf := func(handle string) string { return strings.TrimPrefix(handle, "k8s-pod-network.") }
	all := []string{first, second, "100.112.209.150", "100.112.209.161", "100.112.209.169", "100.112.209.174", "100.112.209.183", "100.112.209.190"}
	const nobodys = "100.112.209.128" // has not even a handle
	stored := testdata(t, "block-2018.json")
	var content struct {
		Attributes []struct {
			Handle string `json:"handle_id"`
		}
	}
	if err := decode(stored, &content); err != nil {
		t.Fatal(err)
	}
	each(t, func(s *fixture) {
		for _, tt := range []struct {
			name   string
			policy string
			pod    []cluster.PodOption
			all    string            // what becomes of the eight
			but    map[string]string // that differ
			want   string            // what is stored then
		}{
			{name: "by default", policy: releaseNow, all: held},
			{name: "a pod hides an address", policy: release, all: held,
				pod: options{cluster.Annotation(cluster.NetworkStatusAnnotation, "[{")}},
			{name: "a pod hangs", policy: release, all: "suspected SandboxAbsent kept", pod: options{cluster.Phase(corev1.PodPending)}},
			{name: "a pod shows an address", policy: release, all: absent,
				pod: options{cluster.PodIPs(second)}, but: map[string]string{second: "inUse AddressInUse kept"}},
			{name: "a pod shows a sandbox", policy: release, all: absent,
				pod: options{cluster.Annotation(calico.ContainerIDAnnotation, sandboxOf(content.Attributes[1].Handle))},
				but: map[string]string{first: "inUse PodPresent kept"}},
			{name: "no pod shows anything", policy: release, all: absent, want: testdata(t, "block-2018-released.json")},
		} {
			s.must(s.Put(s.Context(), calico.Block, s.BlockName(cidr), stored))
			if tt.pod != nil {
				s.pod("legacy", tt.pod...)
			}
			want := map[string]string{nobodys: held}
			for _, ip := range all {
				want[ip] = tt.all
				if line, differs := tt.but[ip]; differs {
					want[ip] = line
				}
			}
			before, findings := s.state(), s.check()
			r := s.mustReap(reap.ExitDone, tt.policy)
			if diff := cmp.Diff(want, lines(r)); diff != "" {
				s.Errorf("%s: report (-want +got):\n%s", tt.name, diff)
			}
			s.wantReleased(before, r)
			s.wantHarmless(r, s.wantSound(findings, r))
			if s.Etcd != nil && tt.want != "" {
				o, err := s.Get(s.Context(), calico.Block, s.BlockName(cidr))
				s.must(err)
				if diff := cmp.Diff(tt.want, o.Raw); diff != "" {
					s.Errorf("%s: block (-want +got):\n%s", tt.name, diff)
				}
			}
			s.must(s.Cluster.DeletePod(s.Context(), shop, "legacy"))
			if s.Failed() {
				s.Fatal(tt.name)
			}
		}
	})
}
