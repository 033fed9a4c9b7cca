package calico_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A StatefulSet ran on a node that died, and its pool is dry. Its pods are on another
// node by now, under their names, and hang. Calico never lets a sandbox adopt the
// address of another one. So the addresses go as soon as the node is fenced, in one run,
// and the plugin gives them to the pods that hang.
func TestStatefulSetComesBackFromADeadNodeThroughADryPool(t *testing.T) {
	const replicas = 4
	each(t, func(s *fixture) {
		s.must(s.CreateNode(s.Context(), "dead"))
		s.must(s.CreateNode(s.Context(), "alive"))
		s.must(s.ApplyPool(s.Context(), "small", netip.MustParsePrefix("10.44.0.0/30"), 30))
		s.must(s.DisablePool(s.Context(), "four"))
		s.createSet("db", replicas)
		want := map[string]string{}
		for i := range replicas {
			sandbox := calico.NewSandbox(shop, fmt.Sprintf("db-%d", i), "dead")
			ips := s.add(sandbox)
			want[ips[0].String()] = "inUse PodPresent kept"
			s.must(s.CreatePod(s.Context(), sandbox, ips))
		}
		s.age(netip.MustParsePrefix("10.44.0.0/30"))
		s.wantLines(want, "all is well")

		s.must(s.Cluster.SetNodeReady(s.Context(), "dead", false))
		for i := range replicas {
			pod := fmt.Sprintf("db-%d", i)
			s.must(s.Cluster.DeletePod(s.Context(), shop, pod))
			if i > 0 { // the controller has not made the first one yet
				s.pod(pod, cluster.OnNode("alive"), cluster.Phase(corev1.PodPending))
			}
		}
		heir := calico.NewSandbox(shop, "db-1", "alive")
		if ips, err := s.Add(s.Context(), heir); err == nil {
			t.Fatalf("the pool is not dry: it gave %v", ips)
		}
		for ip := range want {
			want[ip] = "held NodeUnreachable kept"
		}
		s.wantLines(want, "the node may be cut off")

		s.fence("dead")
		report := s.mustReap(reap.ExitDone, releaseNow)
		reasons := map[string]int{}
		for _, e := range report.Entries {
			if e.Outcome == "released" {
				reasons[e.Reason]++
			}
		}
		if reasons["PodMoved"] != replicas-1 || reasons["PodAbsent"] != 1 {
			t.Errorf("released %v, want %d PodMoved and one PodAbsent", reasons, replicas-1)
		}
		got := s.add(heir)
		for _, ip := range s.check().Leaked {
			if ip != got[0] { // its pod does not show it yet
				t.Errorf("calicoctl finds a leak: %v", ip)
			}
		}
	})
}

// wantLines runs the reaper and compares what it says of the addresses.
func (s *fixture) wantLines(want map[string]string, when string) {
	s.Helper()
	got := lines(s.mustReap(reap.ExitDone, releaseNow))
	for ip, line := range want {
		if got[ip] != line {
			s.Errorf("%s: %s is %q, want %q", when, ip, got[ip], line)
		}
	}
}

// age makes the addresses of a block an hour old.
func (s *fixture) age(block netip.Prefix) {
	s.Helper()
	s.must(s.Edit(s.Context(), calico.Block, s.BlockName(block), func(b map[string]any) {
		for _, a := range b["attributes"].([]any) {
			a.(map[string]any)["secondary"].(map[string]any)["timestamp"] = time.Now().UTC().Add(-time.Hour).String()
		}
	}))
}

// fence taints a node as an operator does who knows that it is off.
func (s *fixture) fence(name string) {
	s.Helper()
	node, err := s.Cluster.Kube.CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{})
	s.must(err)
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	_, err = s.Cluster.Kube.CoreV1().Nodes().Update(s.Context(), node, metav1.UpdateOptions{})
	s.must(err)
}

// createSet creates a StatefulSet of the shop. There is no controller.
func (s *fixture) createSet(name string, replicas int32) {
	s.Helper()
	labels := map[string]string{"app": name}
	_, err := s.Cluster.Kube.AppsV1().StatefulSets(shop).Create(s.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	s.must(err)
}
