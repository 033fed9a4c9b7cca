package calico

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// allocationOf returns the only allocation of a block with this attribute.
func allocationOf(t *testing.T, attribute string) ipam.Allocation {
	t.Helper()
	return mustRead(t, shapes[0].stored(blocks, "10.0.0.9/32", `{"cidr":"10.0.0.9/32","allocations":[0],"unallocated":[],`+
		`"attributes":[`+attribute+`],"sequenceNumberForAllocation":{"0":7}}`)).allocation(0)
}

func TestOwners(t *testing.T) {
	hex := sandbox(10)
	web := ipam.PodRef{Namespace: "default", Name: "web-0"}
	const pod = `"secondary":{"namespace":"default","node":"node-1","pod":"web-0"}`
	for _, tt := range []struct {
		name      string
		attribute string
		want      ipam.Owner
	}{
		{"pod and sandbox", `{"handle_id":"k8s-pod-network.` + hex + `",` + pod + `}`,
			ipam.Owner{Pod: web, Sandbox: hex, Node: "node-1"}},
		{"pod and an ID that is not hexadecimal", `{"handle_id":"k8s-pod-network.` + strings.Repeat("g", 64) + `",` + pod + `}`,
			ipam.Owner{Pod: web, Node: "node-1"}},
		{"pod and a sandbox of another kind", `{"handle_id":"k8s-pod-network.ctr1",` + pod + `}`,
			ipam.Owner{Pod: web, Node: "node-1"}},
		{"pod and sandbox, moved from host-local", `{"handle_id":"k8s-pod-network.` + hex + `\r\neth0",` + pod + `}`,
			ipam.Owner{Pod: web, Sandbox: hex, Node: "node-1"}},
		{"pod, and nothing else in the handle, as Calico v2 wrote it", `{"handle_id":"default.web-0",` + pod + `}`,
			ipam.Owner{Pod: web, Node: "node-1"}},
		{"pod with a name like a sandbox, as Calico v2 wrote it", `{"handle_id":"default.` + hex + `","secondary":{"namespace":"default","pod":"` + hex + `"}}`,
			ipam.Owner{Pod: ipam.PodRef{Namespace: "default", Name: hex}}},
		{"pod without a handle", `{"handle_id":null,` + pod + `}`, ipam.Owner{Pod: web, Node: "node-1"}},
		{"pod without a namespace", `{"handle_id":"k8s-pod-network.` + hex + `","secondary":{"pod":"web-0"}}`,
			ipam.Owner{Pod: ipam.PodRef{Name: "web-0"}, Sandbox: hex}},
		{"node without a pod", `{"handle_id":"k8s-pod-network.` + hex + `","secondary":{"node":"node-1"}}`,
			ipam.Owner{Node: "node-1"}},
		{"node, and a handle that may be a pod's", `{"handle_id":"default.web-0","secondary":{"node":"node-1"}}`,
			ipam.Owner{Node: "node-1"}},

		{"sandbox only", `{"handle_id":"k8s-pod-network.` + hex + `","secondary":null}`, ipam.Owner{Sandbox: hex}},
		{"sandbox only, in a network with dots", `{"handle_id":"a.b.c.` + hex + `","secondary":{}}`, ipam.Owner{Sandbox: hex}},
		{"sandbox without a network", `{"handle_id":"` + hex + `"}`, ipam.Owner{}},
		{"sandbox that is too short", `{"handle_id":"unknown.` + hex[1:] + `"}`,
			ipam.Owner{}},
		{"pod in the handle, as Calico v2 wrote it", `{"handle_id":"default.web-0"}`, ipam.Owner{}},
		{"dot at the end", `{"handle_id":"default."}`, ipam.Owner{}},
		{"nothing", `{}`, ipam.Owner{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := allocationOf(t, tt.attribute)
			if diff := cmp.Diff(tt.want, r.Owner, cmpopts.EquateComparable(ipam.Owner{})); diff != "" {
				t.Errorf("owner (-want +got):\n%s", diff)
			}
			if r.Foreign != "" || r.Unreadable != "" || !r.SandboxOwned() || r.EmptyHandle || r.Key != "0" || r.IP.String() != "10.0.0.9" {
				t.Errorf("listed as %+v", r)
			}
		})
	}
}

func TestGroupIsTheHandle(t *testing.T) {
	for attribute, want := range map[string]string{
		`{"handle_id":"k8s-pod-network.c1","secondary":{"pod":"web-0","namespace":"default"}}`: "k8s-pod-network.c1",
		`{"handle_id":"k8s-pod-network.c1\r\neth0"}`:                                           "k8s-pod-network.c1",
		`{"handle_id":null}`: "",
		`{}`:                 "",
	} {
		if got := allocationOf(t, attribute).Group; got != want {
			t.Errorf("group of %s is %q, want %q", attribute, got, want)
		}
	}
}

// An owner that is not a pod is described.
func TestOwnersThatAreNoPods(t *testing.T) {
	const base64 = "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="
	hex := sandbox(10)
	for _, tt := range []struct {
		name      string
		attribute string
		want      string // part of the words
	}{
		{"ipip tunnel", `{"handle_id":"ipip-tunnel-addr-node-1","secondary":{"node":"node-1","type":"ipipTunnelAddress"}}`, "ipipTunnelAddress"},
		{"vxlan tunnel without attributes", `{"handle_id":"vxlan-tunnel-addr-node-1"}`, "a tunnel"},
		{"wireguard tunnel of a node with dots", `{"handle_id":"wireguard-tunnel-addr-node-1.example.com"}`, "a tunnel"},
		{"load balancer", `{"handle_id":"lb-` + base64 + `","secondary":{"service":"web","namespace":"shop","type":"LoadBalancer"}}`, "the service shop/web"},
		{"load balancer without attributes", `{"handle_id":"lb-` + base64 + `"}`, "a service"},
		{"service without a type", `{"handle_id":"x","secondary":{"service":"web"}}`, "the service web"},
		{"reserved for Windows", `{"handle_id":"windows-reserved-ipam-handle","secondary":{"note":"windows host rsvd"}}`, "windows host rsvd"},
		{"reserved for Windows, without a note", `{"handle_id":"windows-reserved-IPAM-handle"}`, "Windows"},
		{"machine", `{"handle_id":"net.` + hex + `","secondary":{"namespace":"default","pod":"virt-launcher-vm-1","vmi-name":"vm-1"}}`, "a virtual machine"},
		{"machine's definition", `{"handle_id":"net.` + hex + `","secondary":{"vm-uid":"u"}}`, "a virtual machine"},
		{"machine's move", `{"handle_id":"net.` + hex + `","secondary":{"vmim-uid":"u"}}`, "a virtual machine"},
		{"machine that is stopped", `{"handle_id":"net.vmi.default.vm-1","secondary":null,"alternateOwnerAttrs":null}`, "a virtual machine"},
		{"machine by its handle only", `{"handle_id":"net.vmi.default.vm-1","secondary":{"namespace":"default","pod":"virt-launcher-vm-1"}}`, "a virtual machine"},
		{"machine that moves", `{"handle_id":"net.` + hex + `","secondary":{"namespace":"default","pod":"a"},"alternateOwnerAttrs":{"namespace":"default","pod":"b"}}`, "moves"},
		{"unknown type", `{"handle_id":"net.` + hex + `","secondary":{"namespace":"default","pod":"a","type":"somethingNew"}}`, "somethingNew"},
		{"rests", `{"releasedAt":"2026-03-01T12:00:00Z"}`, "no owner"},
		{"rests, of a tunnel", `{"secondary":{"node":"node-1","type":"ipipTunnelAddress"},"releasedAt":"2026-03-01T12:00:00Z"}`, "no owner"},
		{"rests, in another form", `{"handle_id":"net.` + hex + `","releasedAt":{"time":1}}`, "no owner"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := allocationOf(t, tt.attribute)
			if r.Foreign == "" || !strings.Contains(r.Foreign, tt.want) {
				t.Errorf("the owner is %q, want %q in it", r.Foreign, tt.want)
			}
			if r.Tunnel != (tt.want == "ipipTunnelAddress") {
				t.Errorf("it is of a node's tunnel: %t", r.Tunnel)
			}
			if strings.Contains(tt.want, "service") && r.Owner.Pod != (ipam.PodRef{}) {
				t.Errorf("it names the pod %v", r.Owner.Pod)
			}
		})
	}
	for _, attribute := range []string{
		`{"handle_id":"net.` + hex + `","releasedAt":null,"alternateOwnerAttrs":{},"secondary":{"pod":"a","namespace":"b","type":"","note":"","service":""}}`,
		`{"handle_id":"lb-net.` + hex + `","secondary":{"pod":"a","namespace":"b"}}`,
		`{"handle_id":"lb-ns.web-0","secondary":{"pod":"web-0","namespace":"lb-ns"}}`,
	} {
		if r := allocationOf(t, attribute); r.Foreign != "" {
			t.Errorf("the owner of %s is %q, want a pod", attribute, r.Foreign)
		}
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-03-01 12:00:00.123456789 +0000 UTC":           time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC),
		"2026-03-01 12:00:00 +0000 UTC":                     time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		"2926-03-01 12:00:00.5 +0000 UTC":                   time.Date(2926, 3, 1, 12, 0, 0, 5e8, time.UTC),
		"2026-03-01T12:00:00Z":                              {},
		"1772366400":                                        {},
		"2026-03-01 12:00:00.123456789 +0000 UTC m=+0.0001": {},
		"": {},
	} {
		r := allocationOf(t, `{"handle_id":"net.a","secondary":{"pod":"a","namespace":"b","timestamp":"`+text+`"}}`)
		if !r.Created.Equal(want) || r.Unreadable != "" {
			t.Errorf("timestamp %q is read as %v, %q, want %v", text, r.Created, r.Unreadable, want)
		}
	}
}
