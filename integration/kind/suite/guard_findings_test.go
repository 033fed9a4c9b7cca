package suite_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podShowing is a running pod with an address of the default network and, by Multus'
// annotation, perhaps one of another.
func podShowing(name, ip, second string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: "u"}}
	pod.Spec.NodeName = "node-1"
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIPs = []corev1.PodIP{{IP: ip}}
	if second != "" {
		pod.Annotations = map[string]string{"k8s.v1.cni.cncf.io/network-status": `[{"name":"d","interface":"eth0","ips":["` + ip +
			`"],"default":true},{"name":"s","interface":"net1","ips":["` + second + `"]}]`}
	}
	return pod
}

func TestGuardFindsWhatPodsShowAndDoNotHave(t *testing.T) {
	held := func(ip, pod string) allocation {
		return allocation{store: calico, ip: netip.MustParseAddr(ip), pod: pod}
	}
	both := []allocation{held("10.0.0.1", "a/web"), held("10.1.0.1", "a/web")}
	for _, tt := range []struct {
		name string
		pods []corev1.Pod
		held []allocation
		want []string
	}{
		{"all is held", []corev1.Pod{podShowing("web", "10.0.0.1", "10.1.0.1")}, both, nil},
		{"one is not held", []corev1.Pod{podShowing("web", "10.0.0.1", "10.1.0.1")}, both[:1],
			[]string{"pod a/web (u) shows 10.1.0.1, which no store has for it"}},
		{"one is held for another pod", []corev1.Pod{podShowing("web", "10.0.0.1", "")}, []allocation{held("10.0.0.1", "a/api")},
			[]string{"pod a/web (u) shows 10.0.0.1, which no store has for it"}},
		{"two show the same", []corev1.Pod{podShowing("web", "10.0.0.1", ""), podShowing("api", "10.0.0.1", "")},
			append(both, held("10.0.0.1", "a/api")), []string{"pods a/web and a/api both show 10.0.0.1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, findings(tt.pods, tt.held, nil)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGuardLooksOnlyAtPodsThatRun(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"it has finished":           func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"it is being deleted":       func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Time) },
		"it has its node's address": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"its node is excused":       func(p *corev1.Pod) { p.Spec.NodeName = "node-2" },
	} {
		t.Run(name, func(t *testing.T) {
			pod := podShowing("web", "10.0.0.1", "")
			change(&pod)
			if got := findings([]corev1.Pod{pod}, nil, map[string]bool{"node-2": true}); len(got) > 0 {
				t.Errorf("findings: %q", got)
			}
		})
	}
}

func TestStoresAreReadAsTheirPluginsWriteThem(t *testing.T) {
	block := map[string]any{
		"cidr": "10.0.0.8/30", "allocations": []any{int64(0), nil, int64(1), nil},
		"attributes": []any{
			map[string]any{"handle_id": "net.s1", "secondary": map[string]any{"namespace": "a", "pod": "web", "node": "node-1", "timestamp": "2026-01-01"}},
			map[string]any{"handle_id": "ipip-tunnel-addr-node-1", "secondary": map[string]any{"type": "ipipTunnelAddress"}},
		},
	}
	got, err := readBlock(block)
	if err != nil {
		t.Fatal(err)
	}
	want := []allocation{{calico, netip.MustParseAddr("10.0.0.8"), "a/web", "s1", "2026-01-01"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(allocation{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("block (-want +got):\n%s", diff)
	}

	got, err = readPool(map[string]any{"range": "10.1.0.0/29", "allocations": map[string]any{
		"3": map[string]any{"id": "s2", "podref": "a/web", "ifname": "net1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want = []allocation{{whereabouts, netip.MustParseAddr("10.1.0.3"), "a/web", "s2", ""}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(allocation{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("pool (-want +got):\n%s", diff)
	}
}
