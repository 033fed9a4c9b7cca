package state

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// take gives documents to a new dump.
func take(t *testing.T, docs ...ipam.Document) *Dump {
	t.Helper()
	d := new(Dump)
	for _, doc := range docs {
		if _, err := d.Take(doc); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// object is a document of a kind.
func object(apiVersion, kind, data string) ipam.Document {
	return ipam.Document{File: "pods.json", Place: "item 1", APIVersion: apiVersion, Kind: kind, Data: []byte(data)}
}

var (
	dnsPod   = object("v1", "Pod", `{"metadata": {"namespace": "kube-system", "name": "dns", "uid": "u1"}, "spec": {"nodeName": "node-a"}, "status": {"phase": "Running", "podIP": "10.1.0.1"}}`)
	vmi      = object("kubevirt.io/v1", "VirtualMachineInstance", `{"metadata": {"namespace": "vms", "name": "a"}, "status": {"interfaces": [{"ipAddress": "10.2.0.1"}]}}`)
	readyOne = object("v1", "Node", `{"metadata": {"name": "node-a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
)

// Tests in reaper/cli prove that a dry run on files says what one on the cluster says, about pods and
// StatefulSets.
func TestDumpHasMachinesAndNodes(t *testing.T) {
	d := take(t, readyOne, vmi)
	machines, err := d.VirtualMachines(t.Context())
	guest := []census.VirtualMachine{{Namespace: "vms", Name: "a", Addresses: []netip.Addr{netip.MustParseAddr("10.2.0.1")}}}
	if diff := cmp.Diff(guest, machines, compareAddresses); diff != "" || err != nil {
		t.Errorf("VirtualMachines: %v (-want +got):\n%s", err, diff)
	}
	nodes, err := d.Nodes(t.Context())
	if diff := cmp.Diff([]census.Node{{Name: "node-a", Ready: true}}, nodes); diff != "" || err != nil {
		t.Errorf("Nodes: %v (-want +got):\n%s", err, diff)
	}
}

// Of a pod that hangs, a dump has what explain says of it, and no secret.
func TestDumpedPodsAskForTheSame(t *testing.T) {
	const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web", "finalizers": ["shop/wait"],
		"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30, "annotations": {"secret": "hunter2",
		"cni.projectcalico.org/ipAddrs": "[\"10.0.0.7\"]", "cni.projectcalico.org/ipv4pools": "[\"a\"]", "k8s.v1.cni.cncf.io/networks": "lan"}},
		"spec": {"nodeName": "n1"}, "status": {"phase": "Pending"}}`
	dumped := string(Dumped("", []byte(pod)))
	want, err := take(t, object("v1", "Pod", pod)).Asking(t.Context(), "shop", "web")
	got, dumpedErr := take(t, object("v1", "Pod", dumped)).Asking(t.Context(), "shop", "web")
	if diff := cmp.Diff(want, got); diff != "" || err != nil || dumpedErr != nil || len(want) != 1 || strings.Contains(dumped, "hunter2") {
		t.Errorf("%v, %v (-cluster +dump):\n%s\n%s", err, dumpedErr, diff, dumped)
	}
}

// A release is safe because of the second look, and a file allows none.
func TestDumpAllowsNoSecondLook(t *testing.T) {
	d := take(t, dnsPod)
	for _, ref := range []ipam.PodRef{{Namespace: "kube-system", Name: "dns"}, {Namespace: "default", Name: "gone"}} {
		if _, presence, err := d.Pod(t.Context(), ref); presence != census.Unknown || err == nil {
			t.Errorf("Pod(%s) = %v, %v, want Unknown and an error", ref, presence, err)
		}
	}
}

func TestDumpRefusesIncompleteObjects(t *testing.T) {
	more := ipam.Document{APIVersion: "v1", Kind: "PodList", List: true, Place: "document 1", More: true}
	for _, tt := range []struct {
		name string
		doc  ipam.Document
		want string
	}{
		{"one page of a list", more, "document 1 is only a part of a list: dump the whole list"},
		{"a pod without a name", object("v1", "Pod", `{"metadata": {}}`), "item 1: pod: the object has no name"},
		{"a pod that is none", object("v1", "Pod", `{"metadata": {"name": "x"}, "spec": []}`),
			"item 1: pod: json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := new(Dump).Take(tt.doc); err == nil || err.Error() != tt.want {
				t.Errorf("Take: %v, want %s", err, tt.want)
			}
		})
	}
}
