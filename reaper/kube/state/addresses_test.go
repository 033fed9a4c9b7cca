package state

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// manyIPs are the texts of different addresses.
func manyIPs(n int) []string {
	ips := make([]string, n)
	for i := range ips {
		ips[i] = fmt.Sprintf("10.9.%d.%d", i>>8, i&0xff)
	}
	return ips
}

// entriesOf returns a network-status with that many addresses on each interface.
func entriesOf(ips []string, each int) string {
	var entries []map[string]any
	for part := range slices.Chunk(ips, each) {
		entries = append(entries, map[string]any{"interface": fmt.Sprintf("net%d", len(entries)), "ips": part})
	}
	text, _ := json.Marshal(entries)
	return string(text)
}

// Promise 2. A pod that shows more than is read may have any address, so its address is
// unknown, whatever the pod's state.
func TestReadPodStopsAtTheLimits(t *testing.T) {
	const own = 2 // addresses of the status
	long := strings.Repeat("x", maxSandbox+1)
	for _, tt := range []struct {
		name       string
		pod        *corev1.Pod
		addresses  int
		interfaces int
		tooMuch    bool
	}{
		{"as many as are read", annotated(networkStatus, entriesOf(manyIPs(maxAddresses-own), 2)), maxAddresses, maxAddresses/2 - own/2, false},
		{"one more", annotated(networkStatus, entriesOf(manyIPs(maxAddresses-own+1), 2)), maxAddresses, maxAddresses / 2, true},
		{"one more, of Calico", annotated(calicoPodIPs, strings.Join(manyIPs(maxAddresses-own+1), ",")), maxAddresses, 0, true},
		{"one address over and over", annotated(calicoPodIPs, strings.Repeat("10.9.0.1,", 20_000)+"10.9.0.1"), own + 1, 0, false},
		{"one address over and over on an interface",
			annotated(networkStatus, `[{"interface": "net1", "ips": [`+strings.Repeat(`"10.9.0.1",`, 1000)+`"10.9.0.1"]}]`), own + 1, 1, false},
		{"too many interfaces", annotated(networkStatus, "["+numbered(`{"interface":"%d"},`, maxAddresses)+`{"interface":"x"}]`), own, maxAddresses, true},
		{"an interface over and over", annotated(networkStatus, "["+strings.Repeat(`{"interface":"x"},`, 1000)+`{"interface":"x"}]`), own, 1, false},
		{"too many entries", annotated(networkStatus, "["+strings.Repeat(`{"interface":"x"},`, maxEntries)+`{"interface":"y"}]`), own, 1, true},
		{"a few addresses on too many interfaces",
			annotated(networkStatus, "["+numbered(`{"interface":"a%d","ips":["10.9.0.1","10.9.0.2"]},`, 100)+`{"interface":"x"}]`), own + 2, 101, true},
		{"a long text", annotated(networkStatus, `[{"interface": "net1", "ips": ["10.9.0.1"]}]`+strings.Repeat(" ", maxNetworkStatus)), own + 1, 1, true},
		{"a text that ends too late", annotated(networkStatus,
			`[{"interface": "net1", "ips": ["10.9.0.1"]}, {"name": "`+strings.Repeat("x", maxNetworkStatus)+`"}]`), own + 1, 1, true},
		{"a long sandbox", annotated(calicoContainerID, long), own, 0, true},
		{"finished", running(func(p *corev1.Pod) {
			p.Status.Phase, p.Annotations[calicoContainerID] = corev1.PodSucceeded, long
		}), own, 0, true},
		{"starting", running(func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs, p.Annotations[calicoContainerID] = "", nil, long
		}), 0, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := readPod(tt.pod)
			if len(got.Addresses) != tt.addresses || len(got.Interfaces) != tt.interfaces {
				t.Errorf("%d addresses on %d interfaces, want %d on %d", len(got.Addresses), len(got.Interfaces), tt.addresses, tt.interfaces)
			}
			if got.TooMuch != tt.tooMuch || got.AddressUnknown != tt.tooMuch || got.Starting {
				t.Errorf("TooMuch = %v, AddressUnknown = %v, Starting = %v, want %v, %v, false",
					got.TooMuch, got.AddressUnknown, got.Starting, tt.tooMuch, tt.tooMuch)
			}
			if len(got.Sandbox) > maxSandbox {
				t.Errorf("the sandbox has %d bytes", len(got.Sandbox))
			}
		})
	}
}

// numbered repeats a format with numbers.
func numbered(format string, n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

// Promise 1, 2. A pod that seems to show all of its addresses shows all of them.
func TestNoAddressIsLeftOutSilently(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few different addresses, so that some limits are met and others are not.
		all := manyIPs(rapid.SampledFrom([]int{3, 100, 300, 5000}).Draw(t, "different"))
		some := func(most int, name string) []string {
			return rapid.SliceOfN(rapid.SampledFrom(all), 0, most).Draw(t, name)
		}
		status, calico := some(1, "status"), some(300, "calico")
		multus := some(rapid.SampledFrom([]int{3, 300}).Draw(t, "most"), "multus")
		for range rapid.SampledFrom([]int{0, 0, 6}).Draw(t, "doublings") {
			multus = append(multus, all...) // to exceed the size limit
		}
		each := rapid.IntRange(1, 400).Draw(t, "each")
		pod := readPod(running(func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = strings.Join(status, ""), nil
			p.Annotations[calicoPodIPs] = strings.Join(calico, ",")
			p.Annotations[networkStatus] = entriesOf(multus, each)
		}))
		pairs, interfaces := 0, make(map[string][]netip.Addr)
		for _, i := range pod.Interfaces {
			pairs += len(i.Addresses)
			interfaces[i.Name] = i.Addresses
		}
		if len(pod.Addresses) > maxAddresses || len(pod.Interfaces) > maxAddresses || pairs > maxAddresses {
			t.Fatalf("%d addresses, %d on %d interfaces", len(pod.Addresses), pairs, len(pod.Interfaces))
		}
		if pod.AddressUnknown {
			return
		}
		for _, text := range slices.Concat(status, calico, multus) {
			if !slices.Contains(pod.Addresses, netip.MustParseAddr(text)) {
				t.Fatalf("%s is left out of %v, and the address is not unknown", text, pod.Addresses)
			}
		}
		for i, part := range slices.Collect(slices.Chunk(multus, each)) {
			for _, text := range part {
				if name := fmt.Sprintf("net%d", i); !slices.Contains(interfaces[name], netip.MustParseAddr(text)) {
					t.Fatalf("%s is left out of %s, and the address is not unknown", text, name)
				}
			}
		}
	})
}

// Promise 1. A guest can report as many addresses as it likes.
func TestReadMachineStopsAtTheLimit(t *testing.T) {
	for n, tooMuch := range map[int]bool{maxAddresses: false, maxAddresses + 1: true} {
		item, _ := json.Marshal(map[string]any{"status": map[string]any{"interfaces": []any{
			map[string]any{"ipAddresses": manyIPs(n)}, map[string]any{"ipAddress": "10.9.0.0"},
		}}})
		got := readMachine(item)
		if len(got.Addresses) != maxAddresses || got.TooMuch != tooMuch {
			t.Errorf("of %d addresses: %d read, TooMuch = %v, want %v", n, len(got.Addresses), got.TooMuch, tooMuch)
		}
	}
}
