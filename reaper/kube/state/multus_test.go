package state

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// multus returns a network-status written by a version of Multus.
func multus(t *testing.T, version string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "multus", version+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantShown fails the test unless the pod shows these addresses on its interfaces, and besides
// them only those in its status.
func wantShown(t *testing.T, pod *corev1.Pod, interfaces map[string][]string, addressUnknown bool) {
	t.Helper()
	got := readPod(pod)
	addresses := []string{"10.1.0.1", "fd00::1"} // of the status
	for _, on := range interfaces {
		addresses = append(addresses, on...)
	}
	slices.Sort(addresses)
	if diff := cmp.Diff(slices.Compact(addresses), shown(got.Addresses), compareAddresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	on := make(map[string][]string)
	for _, i := range got.Interfaces {
		on[i.Name] = shown(i.Addresses)
	}
	if diff := cmp.Diff(interfaces, on, compareAddresses); diff != "" {
		t.Errorf("interfaces (-want +got):\n%s", diff)
	}
	if got.AddressUnknown != addressUnknown || got.Sandbox != "" {
		t.Errorf("AddressUnknown = %v, Sandbox = %q, want %v and none", got.AddressUnknown, got.Sandbox, addressUnknown)
	}
}

// Promise 1. A pod shows every address that any version of Multus writes, of any network, but
// no gateway's. It shows them in the annotation that the version writes.
func TestReadPodShowsWhatEachMultusWrites(t *testing.T) {
	interfaces := map[string][]string{
		"eth0": {"10.244.1.5", "fd00:10:244:1::5"}, "net1": {"10.1.0.1", "fd00:1::1"}, "net2": nil,
	}
	for version, keys := range map[string][]string{
		"3.4": {networkStatus, networksStatus},
		"3.9": {networkStatus, networksStatus},
		"4.0": {networkStatus},
		"4.2": {networkStatus},
	} {
		t.Run(version, func(t *testing.T) {
			text := multus(t, version)
			all := running(func(p *corev1.Pod) { p.Annotations[networks] = "a/lan,a/sriov@net2" })
			for _, key := range keys {
				all.Annotations[key] = text
				wantShown(t, annotated(key, text), interfaces, false)
			}
			wantShown(t, all, interfaces, false)
			if readPod(all).LeavesOut {
				t.Error("the pod leaves out a network")
			}
		})
	}
}

// Promise 2. A pod whose network-status leaves out a network that it asks for may have an
// address there. Entries of other networks do not make up for it.
func TestReadPodThatLeavesOutANetwork(t *testing.T) {
	const (
		first  = `{"name": "cbr0", "interface": "eth0", "ips": ["10.1.0.1"], "default": true}`
		lan    = `{"name": "default/lan", "interface": "net1", "ips": ["10.7.0.1"]}`
		wan    = `{"name": "b/wan", "interface": "net2", "ips": ["10.8.0.1"]}`
		twin   = `{"name": "default/lan", "interface": "net3", "ips": ["10.7.0.2"]}`
		second = `{"name": "cbr0", "interface": "eth1", "ips": ["10.1.0.2"]}`
		plain  = `{"name": "mybridge", "interface": "net1", "ips": ["10.7.0.1"]}`
	)
	many := strings.Repeat("lan,", maxEntries)
	for _, tt := range []struct {
		asked string
		shown []string
		old   bool // with the annotation of Multus until 3.9
		want  bool
	}{
		{asked: "lan", shown: []string{first, lan}},
		{asked: "lan", shown: []string{first}, want: true},
		{asked: "lan, b/wan", shown: []string{first, lan}, want: true},
		{asked: "lan, b/wan", shown: []string{first, lan, wan}},
		{asked: "lan, b/wan", shown: []string{first, lan, twin}, want: true},
		{asked: "lan,lan@net3", shown: []string{first, lan, twin}},
		{asked: " lan @net1, default / lan@net3", shown: []string{first, lan, twin}},
		{asked: "lan,b/lan", shown: []string{first, lan}, want: true},
		{asked: "lan", shown: []string{first, second}, want: true},
		{asked: "lan", shown: []string{first, second}, old: true, want: true},
		{asked: "lan", shown: []string{first, plain}, want: true},
		{asked: "lan", shown: []string{first, plain}, old: true},
		{asked: "lan,b/lan", shown: []string{first, plain}, old: true, want: true},
		{asked: `[{"name": "lan"}, {"name": "wan", "namespace": "b"}]`, shown: []string{first, lan}, want: true},
		{asked: `[{"name": "lan"}, {"name": "wan", "namespace": "b"}]`, shown: []string{first, lan, wan}},
		{asked: `[{"name": "lan"}, {"name": "lan", "namespace": "default"}]`, shown: []string{first, lan}, want: true},
		{asked: `null`, shown: []string{first, lan}, want: true}, // a name: it has no bracket
		{asked: `[{"name": 7}]`, shown: []string{first, lan}, want: true},
		{asked: strings.TrimSuffix(many, ","), shown: []string{first, lan}, want: true},
		{asked: many + "lan", shown: []string{first, lan}, want: true},
		{asked: strings.Repeat(" ", maxNetworkStatus) + "lan", shown: []string{first, lan}, want: true},
	} {
		pod := running(func(p *corev1.Pod) {
			p.Annotations[networks], p.Annotations[networkStatus] = tt.asked, "["+strings.Join(tt.shown, ",")+"]"
			if tt.old {
				p.Annotations[networksStatus] = "[]"
			}
		})
		got := readPod(pod)
		if got.LeavesOut != tt.want || got.AddressUnknown {
			t.Errorf("asks for %.60s and shows %s: LeavesOut = %v, AddressUnknown = %v, want %v, false",
				tt.asked, tt.shown, got.LeavesOut, got.AddressUnknown, tt.want)
		}
		// Calico's plugin gave it the address, and the kubelet has not written the status.
		pod.Status.PodIP, pod.Status.PodIPs, pod.Annotations[calicoPodIP] = "", nil, "10.1.0.1/32"
		if got := readPod(pod); got.Starting == tt.want {
			t.Errorf("asks for %.60s and shows %s, without a status: Starting = %v", tt.asked, tt.shown, got.Starting)
		}
		pod.Status.Phase = corev1.PodSucceeded
		if readPod(pod).LeavesOut {
			t.Errorf("asks for %.60s, and has finished: it leaves out a network", tt.asked)
		}
	}
}
