package kube

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// multus returns the network-status of a version of Multus.
func multus(t *testing.T, version string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "multus", version+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantShown fails the test unless the pod shows these addresses beside those of its status,
// and these on its interfaces.
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

// Promise 1. A pod shows every address that any version of Multus says, of any network, and
// none that is a gateway. It shows them under the name of the annotation that the version writes.
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
			all := running(func(p *corev1.Pod) { p.Annotations[networks] = "lan,sriov@net2" })
			for _, key := range keys {
				all.Annotations[key] = text
				wantShown(t, annotated(key, text), interfaces, false)
			}
			wantShown(t, all, interfaces, false)
		})
	}
}

// What versions of Multus write beside that, and what other programs write.
func TestReadPodOfOddMultusAndOthers(t *testing.T) {
	asks := func(change func(map[string]string)) *corev1.Pod {
		return running(func(p *corev1.Pod) {
			p.Annotations[networks] = "lan"
			change(p.Annotations)
		})
	}
	for _, tt := range []struct {
		name           string
		pod            *corev1.Pod
		interfaces     map[string][]string
		addressUnknown bool
	}{
		{"up to 4.0, two results of CNI 0.2.0, which name no interface", annotated(networkStatus, `[{
    "name": "a/lan",
    "ips": [
        "10.7.0.1"
    ],
    "dns": {}
},{
    "name": "a/wan",
    "ips": [
        "10.8.0.1"
    ],
    "dns": {}
}]`), map[string][]string{"network a/lan": {"10.7.0.1"}, "network a/wan": {"10.8.0.1"}}, false},
		{"4.2, one network with two interfaces", annotated(networkStatus, `[{
    "name": "a/lan",
    "interface": "net1",
    "ips": [
        "10.7.0.1"
    ],
    "mtu": 1500,
    "dns": {}
},{
    "name": "a/lan",
    "interface": "net1-1",
    "ips": [
        "10.7.0.2"
    ],
    "mtu": 1500,
    "dns": {}
}]`), map[string][]string{"net1": {"10.7.0.1"}, "net1-1": {"10.7.0.2"}}, false},
		{"up to 4.0, after a DEL", asks(func(a map[string]string) {
			a[networkStatus] = "[]"
		}), nil, true},
		{"3.9, and then a new sandbox by 4.2", asks(func(a map[string]string) {
			a[networksStatus] = `[{"name": "a/lan", "interface": "net1", "ips": ["10.7.0.1"], "dns": {}}]`
			a[networkStatus] = `[{"name": "a/lan", "interface": "net1", "ips": ["10.7.0.2"], "mtu": 1500, "dns": {}}]`
		}), map[string][]string{"net1": {"10.7.0.2"}}, false},
		{"3.9, and then a DEL by 4.0", asks(func(a map[string]string) {
			a[networksStatus] = `[{"name": "a/lan", "interface": "net1", "ips": ["10.7.0.1"], "dns": {}}]`
			a[networkStatus] = "[]"
		}), nil, true},
		{"4.2, no entry of a network whose plugin names no interface", asks(func(a map[string]string) {
			a[networkStatus] = `[{"name": "cbr0", "interface": "eth0", "ips": ["10.1.0.1"], "default": true, "dns": {}}]`
		}), map[string][]string{"eth0": {"10.1.0.1"}}, true},
		// CRI-O writes these into the configuration of a container, and never into the API.
		{"CRI-O's annotations", running(func(p *corev1.Pod) {
			p.Annotations["io.kubernetes.cri-o.IP.0"] = "10.7.0.1"
			p.Annotations["io.kubernetes.cri-o.SandboxID"] = "c1"
			p.Annotations["io.kubernetes.cri-o.CNIResult"] = `{"ips":[{"address":"10.7.0.1/24"}]}`
		}), nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) { wantShown(t, tt.pod, tt.interfaces, tt.addressUnknown) })
	}
}

// Promise 2. A pod that asks for a network of which the network-status says nothing may have
// an address there.
func TestReadPodThatAsksForMoreThanIsShown(t *testing.T) {
	const (
		lan  = `{"name": "default/lan", "interface": "net1", "ips": ["10.7.0.1"]}`
		wan  = `{"name": "b/wan", "interface": "net2", "ips": ["10.8.0.1"]}`
		twin = `{"name": "default/lan", "interface": "net3", "ips": ["10.7.0.2"]}`
	)
	for _, tt := range []struct {
		asked, shown string
		want         bool
	}{
		{"lan", lan, false},
		{"lan, b/wan", lan, true},
		{"lan, b/wan", lan + "," + wan, false},
		{"lan, b/wan", lan + "," + twin, true},
		{"lan,lan@net3", lan + "," + twin, false},
		{"lan,default/lan", lan + "," + twin, false},
		{"lan,b/lan", lan, true},
		{`[{"name": "lan"}, {"name": "wan", "namespace": "b"}]`, lan, true},
		{`[{"name": "lan"}, {"name": "wan", "namespace": "b"}]`, lan + "," + wan, false},
		{`[{"name": "lan"}, {"name": "lan", "namespace": "default"}]`, lan, false},
		{`[]`, lan, false},
		{`[{"name": "lan"}`, lan, true},
		{`[{"name": 7}]`, lan, true},
		{strings.Repeat(" ", maxNetworkStatus) + "lan", lan, true},
	} {
		const first = `[{"name": "cbr0", "interface": "eth0", "ips": ["10.1.0.1"], "default": true},`
		got := readPod(running(func(p *corev1.Pod) {
			p.Annotations[networks], p.Annotations[networkStatus] = tt.asked, first+tt.shown+"]"
		}))
		if got.AddressUnknown != tt.want || got.Starting {
			t.Errorf("asks for %.60s and shows %s: AddressUnknown = %v, Starting = %v, want %v, false",
				tt.asked, tt.shown, got.AddressUnknown, got.Starting, tt.want)
		}
	}
}
