package run_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

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

// Without the list of virtual machines there is no census, and without a census no release
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

// An account needs a right to virtual machines only where KubeVirt is installed.
func TestRightToGuestsIsNeededOnlyWithKubeVirt(t *testing.T) {
	f := newFixture(t)
	f.withoutMachines()
	f.leak("web-0")
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": released})

	f.DefineMachinesT(f.T)
	f.leak("web-1")
	before := f.owners()
	f.wantText(f.reap(reap.ExitError, atOnce).Stderr, `cannot list resource "virtualmachineinstances"`)
	if diff := cmp.Diff(before, f.owners()); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

// withoutMachines gives the reaper an account that has every right but those to virtual
// machines, until the test ends.
func (f *fixture) withoutMachines() {
	f.Helper()
	account, err := f.ServiceAccount(f.Context(), home, "reaper")
	f.must(err)
	f.kubeconfig, err = f.KubeconfigFor(account)
	f.must(err)
	const name = "without-machines"
	all := []string{"*"}
	roles, bindings := f.Kube.RbacV1().ClusterRoles(), f.Kube.RbacV1().ClusterRoleBindings()
	_, err = roles.Create(f.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{Verbs: all, Resources: all, APIGroups: []string{
			"", "apps", "coordination.k8s.io", "events.k8s.io", "k8s.cni.cncf.io", "whereabouts.cni.cncf.io", "network.example.com",
		}}},
	}, metav1.CreateOptions{})
	f.must(err)
	_, err = bindings.Create(f.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: "reaper"}},
	}, metav1.CreateOptions{})
	f.must(err)
	t := f.T
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{bindings.Delete, roles.Delete} {
			if err := remove(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	client, err := kubernetes.NewForConfig(account)
	f.must(err)
	cluster.AwaitT(t, "the rights of the account", func() bool {
		_, err := client.CoreV1().Pods("").List(f.Context(), metav1.ListOptions{})
		return err == nil
	})
}
