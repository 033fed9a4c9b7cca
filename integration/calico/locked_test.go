package calico_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// What a pool says is about addresses to be given, not about those to be taken
// back: they are found by block, of any pool or of none (33). An emptied
// block stays, and its affinity: Calico would delete one without an affinity
// (19), and later release the others; with the state machine that it has for it.
func TestPoolsDoNotMatter(t *testing.T) {
	const gone = "orphan PodAbsent released"
	at := func(ip string) func(*fixture, string) []string {
		return func(s *fixture, pod string) []string {
			sandbox := calico.NewSandbox(shop, pod, node)
			sandbox.IP = netip.MustParseAddr(ip)
			return texts(s.add(sandbox))
		}
	}
	each(t, func(s *fixture) {
		for i, name := range []string{"disabled", "deleted", "bare", "resized"} {
			s.must(s.ApplyPool(s.Context(), name, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 33, byte(i), 0}), 24), 26))
		}
		all := s.plant([]row{
			{name: "disabled pool", set: at("10.33.0.5"), want: gone},
			{name: "deleted pool", set: at("10.33.1.5"), want: gone},
			{name: "deleted pool, the last but one of the block", set: at("10.33.1.6"), want: gone},
			{name: "block without affinity", set: at("10.33.2.5"), want: gone},
			{name: "block of another size than its pool's", set: at("10.33.3.5"), want: gone},
			{name: "of a pod that is there", want: "inUse PodPresent kept", set: func(s *fixture, pod string) []string {
				s.pod(pod)
				return at("10.33.1.7")(s, pod)
			}},
		})
		s.must(s.DisablePool(s.Context(), "disabled"))
		s.must(s.DeletePool(s.Context(), "deleted"))
		bare := netip.MustParsePrefix("10.33.2.0/26")
		s.must(s.Edit(s.Context(), calico.Block, s.BlockName(bare), func(b map[string]any) { b["affinity"] = nil }))
		s.must(s.Delete(s.Context(), calico.Affinity, s.AffinityName(node, bare)))
		// calicoctl refuses it; others do it (#10778).
		resized := map[bool]string{false: "resized", true: "/calico/resources/v3/projectcalico.org/ippools/resized"}[s.Etcd != nil]
		s.must(s.Edit(s.Context(), "ippools", resized, func(pool map[string]any) {
			if s.Etcd != nil {
				pool = pool["spec"].(map[string]any)
			}
			pool["blockSize"] = json.Number("28")
		}))

		s.prove(releaseNow, all, func(r row) string { return r.want })
		// Nothing is lost with a block that has neither addresses nor affinity.
		if got := at("10.33.2.5")(s, "new-owner"); got[0] != "10.33.2.5" {
			s.Errorf("the plugin gave %s, want 10.33.2.5", got)
		}
	})
}

// What was released is given again, and last: an address ought to rest.
func TestReleasedAddressesQueueAtTheTail(t *testing.T) {
	each(t, func(s *fixture) {
		s.must(s.DisablePool(s.Context(), "four"))
		block := netip.MustParsePrefix("10.33.0.0/29")
		s.must(s.ApplyPool(s.Context(), "small", block, 29))
		var ips []string
		for n := range 6 { // of eight
			pod := fmt.Sprintf("pod-%d", n)
			_, ip := s.leak(pod)
			ips = append(ips, ip.String())
			if n == 1 {
				s.pod(pod)
			}
		}
		before := s.state()
		s.wantReleased(before, s.mustReap(reap.ExitDone, releaseNow))
		var order []string
		for n := range 7 {
			_, ip := s.leak(fmt.Sprintf("new-%d", n))
			order = append(order, ip.String())
		}
		want := slices.Concat([]string{"10.33.0.6", "10.33.0.7"}, slices.Delete(slices.Clone(ips), 1, 2))
		if diff := cmp.Diff(want, order); diff != "" {
			s.Errorf("addresses, as they were given again (-want +got):\n%s", diff)
		}
		if _, err := s.Add(s.Context(), calico.NewSandbox(shop, "one-too-many", node)); err == nil {
			s.Error("the plugin gave nine of eight addresses")
		}
		s.held() // and the block is what Calico relies on
	})
}

// Tools lock the datastore while they move it (22).
func TestLockedDatastoreIsLeftAlone(t *testing.T) {
	each(t, func(s *fixture) {
		_, ip := s.leak("gone")
		fails := func(why string) {
			s.Helper()
			before, ledgers := s.state(), s.versions()
			r := s.mustReap(reap.ExitPartial, releaseNow)
			if b := backendOf(r); b.Status != "failed" || !strings.Contains(b.Message, why) || len(r.Entries) > 0 {
				s.Errorf("the backend is %s: %q, with %v; want it to have failed: %q", b.Status, b.Message, r.Entries, why)
			}
			s.wantSame(before)
			if diff := cmp.Diff(ledgers, s.versions()); diff != "" {
				s.Errorf("versions in the cluster (-before +after):\n%s", diff)
			}
		}
		s.must(s.Lock(s.Context()))
		fails("datastoreReady is false")
		s.must(s.Unlock(s.Context()))
		r := s.mustReap(reap.ExitDone, releaseNow)
		if got := lines(r)[ip.String()]; got != "orphan PodAbsent released" {
			s.Errorf("after the lock: %q", got)
		}
		// Without the object it is not known.
		s.leak("gone")
		name := map[bool]string{
			false: "default", true: "/calico/resources/v3/projectcalico.org/clusterinformations/default",
		}[s.Etcd != nil]
		s.must(s.Delete(s.Context(), "clusterinformations", name))
		fails("clusterinformation")
	})
}

// versions are those of everything in the cluster but what runs write for
// themselves.
func (s *fixture) versions() map[string]string {
	s.Helper()
	versions, err := s.Cluster.Versions(s.Context())
	s.must(err)
	return reap.StoreObjects(versions)
}
