package state

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

var compareAddresses = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()}

// running is a pod once the kubelet has set it up, changed by the test.
func running(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "u1", Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{NodeName: "node-a"},
		Status: corev1.PodStatus{
			Phase:  corev1.PodRunning,
			PodIP:  "10.1.0.1",
			PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}, {IP: "fd00::1"}},
		},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

// annotated is a running pod with one annotation.
func annotated(key, value string) *corev1.Pod {
	return running(func(p *corev1.Pod) { p.Annotations[key] = value })
}

func TestReadPodShowsEveryAddress(t *testing.T) {
	own := []string{"10.1.0.1", "fd00::1"}
	for _, tt := range []struct {
		name           string
		pod            *corev1.Pod
		addresses      []string
		interfaces     map[string][]string
		addressUnknown bool
	}{
		{"status", running(nil), own, nil, false},
		{"old status of one address", running(func(p *corev1.Pod) { p.Status.PodIPs = nil }), own[:1], nil, false},
		{"only the list", running(func(p *corev1.Pod) { p.Status.PodIP = "" }), own, nil, false},
		{"IPv4 in IPv6 form", running(func(p *corev1.Pod) { p.Status.PodIP = "::ffff:10.1.0.1" }), own, nil, false},

		{"network-status of any interface", annotated(networkStatus, `[
			{"name": "cbr0", "interface": "eth0", "ips": ["10.1.0.1"], "default": true, "dns": {}},
			{"name": "default/net-a", "interface": "net1", "ips": ["10.2.0.1", "fd02::1"], "mac": "02:00:00:00:00:01"},
			{"name": "default/net-b", "interface": "hello", "ips": ["10.3.0.1"]}]`),
			append(slices.Clone(own), "10.2.0.1", "10.3.0.1", "fd02::1"),
			map[string][]string{"eth0": {"10.1.0.1"}, "net1": {"10.2.0.1", "fd02::1"}, "hello": {"10.3.0.1"}}, false},
		{"two entries of one interface", annotated(networkStatus,
			`[{"interface": "net1", "ips": ["10.2.0.1"]}, {"interface": "net1", "ips": ["10.2.0.2"]}]`),
			append(slices.Clone(own), "10.2.0.1", "10.2.0.2"), map[string][]string{"net1": {"10.2.0.1", "10.2.0.2"}}, false},
		{"entry without an interface", annotated(networkStatus, `[{"name": "default/net-a", "ips": ["10.2.0.1"]}]`),
			append(slices.Clone(own), "10.2.0.1"), map[string][]string{"network default/net-a": {"10.2.0.1"}}, false},
		{"entry without addresses", annotated(networkStatus, `[{"name": "default/sriov", "interface": "net1"}]`),
			own, map[string][]string{"net1": nil}, false},
		{"addresses with a prefix length, in capitals, in IPv6 form", annotated(networkStatus,
			`[{"interface": "net1", "ips": ["10.2.0.1/24", "FD02::000A/64", "::ffff:10.2.0.2/120", " 10.2.0.3 "]}]`),
			append(slices.Clone(own), "10.2.0.1", "10.2.0.2", "10.2.0.3", "fd02::a"),
			map[string][]string{"net1": {"10.2.0.1", "10.2.0.2", "10.2.0.3", "fd02::a"}}, false},
		{"address with a zone", annotated(networkStatus, `[{"interface": "net1", "ips": ["fe80::1%net1"]}]`),
			append(slices.Clone(own), "fe80::1"), map[string][]string{"net1": {"fe80::1"}}, false},
		{"empty network-status", annotated(networkStatus, ""), own, nil, false},
		{"null network-status", annotated(networkStatus, "null"), own, nil, false},

		{"Multus 3.9, and then a new sandbox by 4.2", running(func(p *corev1.Pod) {
			p.Annotations[networks] = "lan"
			p.Annotations[networksStatus] = `[{"name": "a/lan", "interface": "net1", "ips": ["10.7.0.1"], "dns": {}}]`
			p.Annotations[networkStatus] = `[{"name": "a/lan", "interface": "net1", "ips": ["10.7.0.2"], "mtu": 1500, "dns": {}}]`
		}), append(slices.Clone(own), "10.7.0.2"), map[string][]string{"net1": {"10.7.0.2"}}, false},
		{"Multus 3.9, and then a DEL by 4.0", running(func(p *corev1.Pod) {
			p.Annotations[networks] = "lan"
			p.Annotations[networksStatus] = `[{"name": "a/lan", "interface": "net1", "ips": ["10.7.0.1"], "dns": {}}]`
			p.Annotations[networkStatus] = "[]"
		}), own, nil, true},

		{"network-status that is no JSON", annotated(networkStatus, `[{"interface": "net1", "ips": ["10.2.0.1"]`), own, nil, true},
		{"network-status that is no list", annotated(networkStatus, `{"interface": "net1", "ips": ["10.2.0.1"]}`), own, nil, true},
		{"one address that is none", annotated(networkStatus, `[{"interface": "net1", "ips": ["10.2.0.1", "10.2.0.x"]}]`),
			append(slices.Clone(own), "10.2.0.1"), map[string][]string{"net1": {"10.2.0.1"}}, true},
		{"one entry of a wrong type hides no other", annotated(networkStatus,
			`[{"interface": "net1", "ips": "10.2.0.1"}, 7, {"interface": "net2", "ips": ["10.3.0.1"]}]`),
			append(slices.Clone(own), "10.3.0.1"), map[string][]string{"net2": {"10.3.0.1"}}, true},
		{"one address of a wrong type hides no other", annotated(networkStatus,
			`[{"name": 7, "interface": "net1", "ips": [7, "10.2.0.1"]}]`),
			append(slices.Clone(own), "10.2.0.1"), map[string][]string{"net1": {"10.2.0.1"}}, true},

		{"Calico's address", annotated(calicoPodIP, "10.4.0.1/32"), append(slices.Clone(own), "10.4.0.1"), nil, false},
		{"Calico's addresses", annotated(calicoPodIPs, "10.4.0.1/32,fd04::1/128"),
			append(slices.Clone(own), "10.4.0.1", "fd04::1"), nil, false},
		{"Calico's addresses before the status", running(func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = "", nil
			p.Annotations[calicoPodIPs] = "10.4.0.1/32"
		}), []string{"10.4.0.1"}, nil, true},
		{"nonsense from Calico", annotated(calicoPodIPs, ",,x,/32"), own, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := readPod(tt.pod)
			if diff := cmp.Diff(sorted(tt.addresses), shown(got.Addresses), compareAddresses); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
			interfaces := make(map[string][]string)
			for _, i := range got.Interfaces {
				interfaces[i.Name] = shown(i.Addresses)
			}
			if diff := cmp.Diff(tt.interfaces, interfaces, compareAddresses); diff != "" {
				t.Errorf("interfaces (-want +got):\n%s", diff)
			}
			if got.AddressUnknown != tt.addressUnknown {
				t.Errorf("AddressUnknown = %v, want %v", got.AddressUnknown, tt.addressUnknown)
			}
		})
	}
}

// A pod that hangs after its node was booted again keeps the status of before, but for that condition.
func TestPodSaysThatItHasNoSandbox(t *testing.T) {
	for name, tt := range map[string]struct {
		condition corev1.PodCondition
		want      bool
	}{
		"it has none":              {corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}, true},
		"it has one":               {corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}, false},
		"it is not ready":          {corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}, false},
		"the kubelet does not say": {corev1.PodCondition{}, false},
	} {
		pod := running(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled}, tt.condition}
		})
		if got := readPod(pod).NoSandbox; got != tt.want {
			t.Errorf("%s: NoSandbox is %v, want %v", name, got, tt.want)
		}
	}
	emptied := running(func(p *corev1.Pod) { p.Annotations[calicoPodIP] = "" }) // by Calico's DEL
	if !readPod(emptied).NoSandbox {
		t.Error("a pod whose address Calico's plugin took back has a sandbox")
	}
}

func TestReadPodKeepsWhoItIs(t *testing.T) {
	pod := annotated(calicoContainerID, "c1")
	pod.DeletionTimestamp = &metav1.Time{}
	got := readPod(pod)
	got.Addresses, got.InStatus = nil, 0
	want := census.Pod{Ref: ipam.PodRef{Namespace: "default", Name: "web-0"}, UID: "u1", Node: "node-a", Sandbox: "c1"}
	if diff := cmp.Diff(want, got, compareAddresses); diff != "" {
		t.Errorf("readPod (-want +got):\n%s", diff)
	}
}

func TestReadPodIsAddressUnknownWhereAnAddressIsMissing(t *testing.T) {
	bare := func(change func(*corev1.Pod)) *corev1.Pod {
		return running(func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = "", nil
			change(p)
		})
	}
	for _, tt := range []struct {
		name           string
		pod            *corev1.Pod
		addressUnknown bool
		finished       bool
		starting       bool
	}{
		{"running without an address", bare(func(*corev1.Pod) {}), true, false, true},
		{"of an unknown phase", bare(func(p *corev1.Pod) { p.Status.Phase = "" }), true, false, true},
		{"not on a node yet", bare(func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending }), false, false, false},
		{"in the node's network", bare(func(p *corev1.Pod) { p.Spec.HostNetwork = true }), false, false, false},
		{"succeeded", bare(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), false, true, false},
		{"failed, with a broken annotation", running(func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Annotations[networkStatus] = "{"
		}), false, true, false},
		{"asks Multus and shows nothing yet", annotated(networks, "net-a"), true, false, false},
		{"asks Multus and shows it", running(func(p *corev1.Pod) {
			p.Annotations[networks] = "net-a"
			p.Annotations[networkStatus] = `[{"interface": "net1", "ips": ["10.2.0.1"]}]`
		}), false, false, false},
		{"in the node's network, and asks Multus", running(func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			p.Annotations[networks] = "net-a"
		}), true, false, false},
		{"Multus showed an address, and no status does", bare(func(p *corev1.Pod) {
			p.Annotations[networkStatus] = `[{"interface": "eth0", "ips": ["10.2.0.1"]}]`
		}), true, false, false},
		{"Calico and Multus are done, and the kubelet has not written the status", bare(func(p *corev1.Pod) {
			p.Annotations[calicoPodIP] = "10.4.0.1/32"
			p.Annotations[networkStatus] = `[{"interface": "eth0", "ips": ["10.4.0.1"]}, {"interface": "net1", "ips": ["10.2.0.1"]}]`
		}), true, false, true},
		{"Calico and Multus are done, and the status has no address", running(func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = "none", nil
			p.Annotations[calicoPodIP] = "10.4.0.1/32"
			p.Annotations[networkStatus] = `[{"interface": "eth0", "ips": ["10.4.0.1"]}]`
		}), true, false, false},
		{"Calico's address is none", bare(func(p *corev1.Pod) { p.Annotations[calicoPodIPs] = "none" }), true, false, false},
		{"Calico's plugin took its address back", bare(func(p *corev1.Pod) { p.Annotations[calicoPodIPs] = "" }), true, false, true},
		{"being set up, with a broken annotation", bare(func(p *corev1.Pod) { p.Annotations[networkStatus] = "{" }), true, false, false},
		{"Calico's plugin is done, and those of other networks are not", bare(func(p *corev1.Pod) {
			p.Annotations[calicoPodIP], p.Annotations[networks] = "10.4.0.1/32", "net1"
		}), true, false, true},
		{"the sandbox is set up, and Multus says nothing", running(func(p *corev1.Pod) { p.Annotations[networks] = "net1" }), true, false, false},
		{"Calico's plugin is done", bare(func(p *corev1.Pod) { p.Annotations[calicoPodIP] = "10.4.0.1/32" }), true, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := readPod(tt.pod)
			if got.AddressUnknown != tt.addressUnknown || got.Finished != tt.finished {
				t.Errorf("AddressUnknown = %v, Finished = %v, want %v, %v", got.AddressUnknown, got.Finished, tt.addressUnknown, tt.finished)
			}
			if got.Starting != tt.starting {
				t.Errorf("Starting = %v, want %v", got.Starting, tt.starting)
			}
		})
	}
}

func TestReadPodNamesTheLongestTerminationGrace(t *testing.T) {
	for _, tt := range []struct {
		name           string
		spec, deletion *int64
		want           time.Duration
	}{
		{"none", nil, nil, 0},
		{"deleted by force", new(int64(300)), new(int64(0)), 5 * time.Minute},
		{"deleted with more time", new(int64(30)), new(int64(600)), 10 * time.Minute},
		{"for ever", new(int64(math.MaxInt64)), nil, math.MaxInt64 / time.Second * time.Second},
		{"of a mirror pod", nil, new(int64(30)), 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := readPod(running(func(p *corev1.Pod) {
				p.Spec.TerminationGracePeriodSeconds, p.DeletionGracePeriodSeconds = tt.spec, tt.deletion
			})).TerminationGrace
			if got != tt.want {
				t.Errorf("TerminationGrace = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestReadStatefulSet(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec appsv1.StatefulSetSpec
		want census.StatefulSet
	}{
		{"replicas not set", appsv1.StatefulSetSpec{}, census.StatefulSet{Replicas: 1}},
		{"scaled to zero", appsv1.StatefulSetSpec{Replicas: new(int32(0))}, census.StatefulSet{Replicas: 0}},
		{"three from five on", appsv1.StatefulSetSpec{Replicas: new(int32(3)), Ordinals: &appsv1.StatefulSetOrdinals{Start: 5}},
			census.StatefulSet{Replicas: 3, Start: 5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Namespace, tt.want.Name = "default", "web"
			got := readStatefulSet(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: tt.spec})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("readStatefulSet (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 2. A node is ready only if it says so, and out of service only if
// it has the taint. It says since when it is ready, or is not.
func TestReadNode(t *testing.T) {
	since := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	ready := func(status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since)}
	}
	pressure := corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}
	taint := func(key string, effect corev1.TaintEffect) []corev1.Taint {
		return []corev1.Taint{{Key: "other"}, {Key: key, Value: "nodeshutdown", Effect: effect}}
	}
	for _, tt := range []struct {
		name       string
		conditions []corev1.NodeCondition
		taints     []corev1.Taint
		want       census.Node
	}{
		{"ready", []corev1.NodeCondition{pressure, ready(corev1.ConditionTrue)}, nil, census.Node{Ready: true, Since: since}},
		{"not ready", []corev1.NodeCondition{ready(corev1.ConditionFalse), pressure}, nil, census.Node{Since: since}},
		{"its kubelet is silent", []corev1.NodeCondition{ready(corev1.ConditionUnknown)}, nil, census.Node{Lost: true, Since: since}},
		{"an unknown word", []corev1.NodeCondition{ready("true")}, nil, census.Node{Since: since}},
		{"no word", []corev1.NodeCondition{ready("")}, nil, census.Node{Since: since}},
		{"no condition", nil, nil, census.Node{}},
		{"out of service", nil, taint(corev1.TaintNodeOutOfService, corev1.TaintEffectNoExecute), census.Node{OutOfService: true}},
		{"out of service, with another effect", []corev1.NodeCondition{ready(corev1.ConditionTrue)},
			taint(corev1.TaintNodeOutOfService, corev1.TaintEffectNoSchedule), census.Node{Ready: true, Since: since, OutOfService: true}},
		{"out of service since a time", nil, []corev1.Taint{{Key: corev1.TaintNodeOutOfService, TimeAdded: &metav1.Time{Time: since}}, {Key: "other", TimeAdded: &metav1.Time{}}},
			census.Node{OutOfService: true, Tainted: since}},
		{"unreachable", nil, taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), census.Node{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			joined := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
			tt.want.Name, tt.want.Created, tt.want.Boot = "node-a", joined, "boot-1"
			got := readNode(&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "node-a", CreationTimestamp: metav1.NewTime(joined)},
				Spec:       corev1.NodeSpec{Taints: tt.taints},
				Status:     corev1.NodeStatus{Conditions: tt.conditions, NodeInfo: corev1.NodeSystemInfo{BootID: "boot-1"}},
			})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("readNode (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 1. The ledger stores the boot as text, and a boot that differs from the stored one ends a hold.
func TestBootIsText(t *testing.T) {
	for _, id := range []string{"\xff", strings.Repeat("é", 40), "x" + strings.Repeat("é", 40)} {
		node := corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: id}}}
		if got := readNode(&node).Boot; !utf8.ValidString(got) || got == "" || len(got) > maxBoot {
			t.Errorf("%q is the boot %q", id, got)
		}
	}
}

// Promise 1. A kubelet writes the operating system as Go names it, and others may not.
func TestNodeIsOnWindows(t *testing.T) {
	for system, want := range map[string]bool{"windows": true, "Windows": true, "linux": false, "": false} {
		node := corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{OperatingSystem: system}}}
		if got := readNode(&node).Windows; got != want {
			t.Errorf("%q: %v", system, got)
		}
	}
}

// Promise 1. A store may call a node by any of these.
func TestOtherNamesOfANode(t *testing.T) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w-1", Labels: map[string]string{corev1.LabelHostname: "w-1.corp.example", "other": "no"}}}
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeExternalIP, Address: "192.0.2.2"},
		{Type: corev1.NodeHostName, Address: "w-1"}, {Type: corev1.NodeInternalDNS, Address: "w-1.internal"},
		{Type: corev1.NodeExternalDNS, Address: "machine-7"}, {Type: corev1.NodeInternalDNS, Address: ""},
	}
	if diff := cmp.Diff([]string{"w-1.corp.example", "w-1.internal", "machine-7"}, readNode(&node).OtherNames); diff != "" {
		t.Errorf("other names (-want +got):\n%s", diff)
	}
}

// Promise 1. The devices of a node have the addresses that Calico wrote into its annotations.
func TestReadNodeHasTheTunnelsOfCalico(t *testing.T) {
	got := readNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", Annotations: map[string]string{
		"projectcalico.org/IPv4Address":                "192.0.2.1/24",
		"projectcalico.org/IPv4IPIPTunnelAddr":         "10.0.0.1",
		"projectcalico.org/IPv4VXLANTunnelAddr":        "10.0.0.2",
		"projectcalico.org/IPv6VXLANTunnelAddr":        "fd00::3",
		"projectcalico.org/IPv4WireguardInterfaceAddr": "::ffff:10.0.0.4",
		"projectcalico.org/IPv6WireguardInterfaceAddr": "none",
	}}})
	want := map[netip.Addr]string{
		netip.MustParseAddr("10.0.0.1"): "projectcalico.org/IPv4IPIPTunnelAddr", netip.MustParseAddr("10.0.0.2"): "projectcalico.org/IPv4VXLANTunnelAddr",
		netip.MustParseAddr("fd00::3"): "projectcalico.org/IPv6VXLANTunnelAddr", netip.MustParseAddr("10.0.0.4"): "projectcalico.org/IPv4WireguardInterfaceAddr",
	}
	if diff := cmp.Diff(want, got.Tunnels, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("tunnels (-want +got):\n%s", diff)
	}
}

// A deletion says when it should be complete. The mirror of a static pod says nothing about the
// age of its sandbox.
func TestTimesOfAPod(t *testing.T) {
	created, deadline := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, time.March, 1, 13, 0, 0, 0, time.UTC)
	type times struct {
		Created, Deadline time.Time
	}
	for _, tt := range []struct {
		name   string
		change func(*corev1.Pod)
		want   times
	}{
		{"a pod", func(*corev1.Pod) {}, times{Created: created}},
		{"Terminating", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: deadline} }, times{Created: created, Deadline: deadline}},
		{"a mirror pod", func(p *corev1.Pod) { p.Annotations[mirror] = "abc" }, times{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := readPod(running(func(p *corev1.Pod) {
				p.CreationTimestamp = metav1.NewTime(created)
				tt.change(p)
			}))
			if diff := cmp.Diff(tt.want, times{pod.Created, pod.Deadline}); diff != "" {
				t.Errorf("times (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 1. A static pod on the network of its node has no address of its own.
func TestMirrorOfAStaticPod(t *testing.T) {
	for name, tt := range map[string]struct {
		mirror, hostNetwork, want bool
	}{"a mirror": {true, false, true}, "on the network of the node": {true, true, false}, "no mirror": {false, false, false}} {
		pod := readPod(running(func(p *corev1.Pod) {
			if p.Spec.HostNetwork = tt.hostNetwork; tt.mirror {
				p.Annotations[mirror] = "abc"
			}
		}))
		if pod.Mirror != tt.want {
			t.Errorf("%s: Mirror is %v, want %v", name, pod.Mirror, tt.want)
		}
	}
}

// shown returns the addresses sorted, for comparing.
func shown(ips []netip.Addr) []string {
	var all []string
	for _, ip := range ips {
		all = append(all, ip.String())
	}
	return sorted(all)
}

func sorted(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return all
}
