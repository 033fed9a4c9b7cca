package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
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
// that runs the guest shows another address (promise 1).
func TestAddressOfAGuestIsInUse(t *testing.T) {
	f := newFixture(t)
	f.DefineMachinesT(f.T)
	f.machine("old", "fd00::7", f.leak("virt-launcher-old"))
	f.machine("odd", "none", int64(7))
	f.leak("virt-launcher-gone")
	const guest = "inUse AddressInUse kept"
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"virt-launcher-old": guest, "virt-launcher-gone": released})

	f.must(f.Dynamic.Resource(cluster.VirtualMachines).Namespace(shop).Delete(f.Context(), "old", metav1.DeleteOptions{}))
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"virt-launcher-old": released})
}

// Without the list of virtual machines there is no census, and without a census there is no release
// (promise 2).
func TestNothingIsReleasedIfGuestsCannotBeListed(t *testing.T) {
	f := newFixture(t)
	f.DefineMachinesT(f.T)
	f.machine("old", f.leak("virt-launcher-old"))
	f.leak("virt-launcher-gone")
	before := f.owners()
	for _, request := range []string{"list virtualmachineinstances", "GET /apis", "GET /apis/kubevirt.io/v1"} {
		f.toReaper.Reset()
		f.toReaper.Before(proxy.On(request), proxy.Always(proxy.Answer(404, metav1.StatusReasonNotFound, "injected: not found")))
		f.wantText(f.reap(reap.ExitError, atOnce).Stderr, "list virtualmachineinstances: ")
		if diff := cmp.Diff(before, f.owners()); diff != "" {
			t.Errorf("%s: owners (-want +got):\n%s", request, diff)
		}
	}
}
