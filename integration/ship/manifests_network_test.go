package ship_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
		policy := every[*networkingv1.NetworkPolicy](t, render(t, overlay{Resources: []string{"cronjob"}, Components: components}.write(t)))[home]
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

// One network policy is for the pods of the CronJob and for those of an outage, which have
// a folder of their own.
func TestNetworkPolicyIsForEveryPod(t *testing.T) {
	all := render(t, overlay{Resources: []string{"cronjob"}, Components: []string{"network-policy"}}.write(t))
	policy := every[*networkingv1.NetworkPolicy](t, all)[home]
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	jobs := every[*batchv1.CronJob](t, all)
	maps.Copy(jobs, every[*batchv1.CronJob](t, render(t, shipped(t, "job"))))
	if len(jobs) != 5 {
		t.Errorf("%d CronJobs, want 5", len(jobs))
	}
	for name, job := range jobs {
		if job.Namespace != policy.Namespace || !selector.Matches(labels.Set(job.Spec.JobTemplate.Spec.Template.Labels)) {
			t.Errorf("it is not for the pods of %s", name)
		}
	}
}
