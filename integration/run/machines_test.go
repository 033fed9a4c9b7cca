package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// machine creates a virtual machine whose guest reports the addresses.
func (f *fixture) machine(name string, ips ...any) {
	f.Helper()
	_, err := f.Dynamic.Resource(cluster.VirtualMachines).Namespace(shop).Create(f.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": map[string]any{"name": name},
		"status": map[string]any{"interfaces": []any{map[string]any{"name": "net1", "ipAddress": ips[0], "ipAddresses": ips}}},
	}}, metav1.CreateOptions{})
	f.must(err)
}

// After a live migration, the launcher pod that the allocation names is gone, and the pod
// that runs the guest shows another address (promise 1). The guest of another machine keeps an
// address too, and the report says so (promise 7).
func TestAddressOfAGuestIsInUse(t *testing.T) {
	f := newFixture(t)
	f.DefineMachinesT(f.T)
	const launcher, gone = "virt-launcher-old-x7k2p", "virt-launcher-gone-x7k2p"
	f.machine("old", "fd00::7", f.leak(launcher))
	f.machine("odd", "none", int64(7))
	other := f.leak("web-0")
	f.machine("greedy", other)
	f.leak(gone)
	const guest = "inUse AddressInUse kept"
	report := f.reap(reap.ExitDone, atOnce).Report
	f.wantSaid(report, decisions{launcher: guest, "web-0": guest, gone: released})
	want := "some allocations of others are kept only by what the guests of virtual machines report: shop/greedy (1, such as " + other +
		"). If that is false, correct it in the guest, or stop the machine"
	if diff := cmp.Diff([]string{want}, report.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	f.must(f.Dynamic.Resource(cluster.VirtualMachines).Namespace(shop).Delete(f.Context(), "greedy", metav1.DeleteOptions{}))
	f.must(f.Dynamic.Resource(cluster.VirtualMachines).Namespace(shop).Delete(f.Context(), "old", metav1.DeleteOptions{}))
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{launcher: released, "web-0": released})
}
