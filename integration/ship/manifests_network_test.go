package ship_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// The network policy lets the pods reach the API server, and etcd, the Pushgateway and DNS
// only if the components that need them are listed. It lets no connection in.
func TestNetworkPolicyLetsThePodsReachWhatTheyUse(t *testing.T) {
	api, dns := []string{"TCP 443", "TCP 6443"}, []string{"TCP 53", "TCP 5353", "UDP 53", "UDP 5353"}
	for _, tt := range []struct {
		components []string
		want       [][]string
	}{
		{nil, [][]string{api}},
		{[]string{"metrics"}, [][]string{api, {"TCP 9091"}, dns}},
		{[]string{"calico-etcd"}, [][]string{api, {"TCP 2379"}, dns}},
		{[]string{"calico-etcd", "metrics"}, [][]string{api, {"TCP 2379"}, dns, {"TCP 9091"}, dns}},
	} {
		components := append([]string{"network-policy"}, tt.components...)
		policy := every[*networkingv1.NetworkPolicy](t, render(t, of(components...).write(t)))[home]
		if policy == nil {
			t.Fatalf("%v: no NetworkPolicy", components)
		}
		var got [][]string
		for _, rule := range policy.Spec.Egress {
			var ports []string
			for _, p := range rule.Ports {
				protocol := corev1.ProtocolTCP
				if p.Protocol != nil {
					protocol = *p.Protocol
				}
				ports = append(ports, fmt.Sprintf("%s %d", protocol, p.Port.IntValue()))
			}
			slices.Sort(ports)
			got = append(got, ports)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: ports of the rules (-want +got):\n%s", components, diff)
		}
		types := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
		if !slices.Equal(policy.Spec.PolicyTypes, types) || len(policy.Spec.Ingress) > 0 {
			t.Errorf("%v: it is for %v, with the ingress %v", components, policy.Spec.PolicyTypes, policy.Spec.Ingress)
		}
	}
}
