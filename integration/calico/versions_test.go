package calico_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// The tests named versions load what other versions of Calico store into the real datastores, and
// have ip-reaper run over it. The programs of these versions do not run here: the other tests have
// those of v3.28. One namespace is left out.
const exceptExcluded = releaseNow + "namespaces: {exclude: [excluded]}\n"

// prove loads a form and runs over it twice. Each of the entries has to get its verdict, for
// its reason. What the form says is released, and nothing else; calicoctl finds the rest
// (promises 1 and 6).
func (f form) prove(t *testing.T) {
	s := f.load(t)
	got := map[string]string{}
	for _, e := range s.reap(t, f.alone).Entries {
		owner := "no pod"
		if e.Owner.Pod != "" {
			owner = e.Owner.Namespace + "/" + e.Owner.Pod
		}
		got[owner+" "+e.IP] = strings.Join([]string{e.Decision, e.Reason, e.Outcome}, " ")
	}
	if diff := cmp.Diff(f.want, got); diff != "" {
		t.Errorf("entries of the report (-want +got):\n%s", diff)
	}
	f.check(t, s)
	if again := s.reap(t, f.alone); again.Summary.Released != 0 {
		t.Errorf("the second run released %d", again.Summary.Released)
	}
}

// reap runs the binary. Where the store has one cluster alone, the policy says so.
func (s replica) reap(t *testing.T, alone bool) *reap.Report {
	t.Helper()
	policy := exceptExcluded
	if alone {
		policy += "nodes: {foreign: release}\n"
	}
	if len(s.env) > 0 {
		policy += reap.InEtcd
	}
	return reap.StartT(t, s.cluster.Kubeconfig, policy, s.env).EndT(t, reap.ExitDone).Report
}

// kept are the addresses that stay.
func (f form) kept() map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for entry, verdict := range f.want {
		if !strings.HasSuffix(verdict, " released") {
			all[netip.MustParseAddr(entry[strings.LastIndexByte(entry, ' ')+1:])] = true
		}
	}
	return all
}

// check has calicoctl look, where it understands the form: it has to find the
// addresses that stay, and a handle for each.
func (f form) check(t *testing.T, s replica) {
	t.Helper()
	if s.datastore == nil || !f.whole {
		return
	}
	r, err := s.datastore.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[netip.Addr]bool{}
	for ip := range r.Allocations {
		got[ip] = true
	}
	if diff := cmp.Diff(f.kept(), got); diff != "" {
		t.Errorf("addresses that calicoctl finds (-want +got):\n%s", diff)
	}
	if len(r.LeakedHandles)+len(r.MissingHandles) > 0 {
		t.Errorf("calicoctl finds leaked handles %v and missing ones %v", r.LeakedHandles, r.MissingHandles)
	}
}
