package calico_test

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// The plugin refuses a pod the address that it asks for where explain says why Calico gives it to no pod on that
// node, and nowhere else.
func TestStaticAddressThatThePluginRefuses(t *testing.T) {
	each(t, func(s *fixture) {
		_, err := s.Calicoctl(s.Context(), "", "ipam", "configure", "--strictaffinity=true")
		s.must(err)
		_, own := s.live("on-node-1")
		s.must(s.CreateNode(s.Context(), "node-2"))
		others, err := s.Add(s.Context(), calico.NewSandbox(shop, "on-node-2", "node-2"))
		s.must(err)
		s.must(s.ApplyPool(s.Context(), "old", netip.MustParsePrefix("10.33.0.0/28"), 28))
		_, err = s.Calicoctl(s.Context(), "", "patch", "ippool", "old", "--patch", `{"spec": {"disabled": true}}`)
		s.must(err)
		reserved := own.Next().Next()
		s.keep("mine", reserved.String())
		const mayHave = "and no other: explain that address to see what has it"
		for _, tt := range []struct {
			ip   netip.Addr
			want string
		}{
			{others[0].Next(), fmt.Sprintf("%s is in the block %s of node-2, and no node may borrow from that of another (strictAffinity)", others[0].Next(), s.blockOf(others[0]))},
			{netip.MustParseAddr("10.33.0.3"), "10.33.0.3 is in no enabled IPPool of those that were read"},
			{netip.MustParseAddr("10.99.0.1"), "10.99.0.1 is in no enabled IPPool of those that were read"},
			{own.Next(), mayHave},
			{reserved, mayHave},
		} {
			_, err := s.Cluster.CreatePod(s.Context(), shop, "hangs", cluster.OnNode(node), cluster.Phase("Pending"), func(p *corev1.Pod) {
				p.Annotations = map[string]string{"cni.projectcalico.org/ipAddrs": fmt.Sprintf("[%q]", tt.ip)}
			})
			s.must(err)
			s.explained(tt.want, "")
			s.must(s.Cluster.DeletePod(s.Context(), shop, "hangs"))
			asks := calico.NewSandbox(shop, "hangs", node)
			asks.IP = tt.ip
			if _, err := s.Add(s.Context(), asks); (err == nil) != (tt.want == mayHave) {
				s.Errorf("asked for %s, the plugin answers %v", tt.ip, err)
			}
			s.must(s.Del(s.Context(), asks))
		}
	})
}
