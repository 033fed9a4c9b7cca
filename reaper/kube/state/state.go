package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// StateNamespace is where ledger, lock and journals are, unless a pod or a flag says
// otherwise.
const StateNamespace = "ip-reaper"

// CheckNamespace returns an *ipam.InputError if the state namespace does not exist or is being
// deleted. It returns nil if it cannot tell, for example without the right to get namespaces:
// then the first write fails, before any release.
func CheckNamespace(ctx context.Context, core corev1client.NamespacesGetter, name string) error {
	namespace, err := core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case kube.Gone(err, "namespaces", name):
		return noNamespace(name, "does not exist", err)
	case err == nil && namespace.Status.Phase == corev1.NamespaceTerminating:
		return noNamespace(name, "is being deleted", err)
	}
	return nil
}

// HasNamespace reports whether the cluster has a namespace. The error says why that is unknown.
func HasNamespace(ctx context.Context, core corev1client.NamespacesGetter, name string) (bool, error) {
	_, err := core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if kube.Gone(err, "namespaces", name) {
		return false, nil
	}
	return err == nil, err
}

// ClusterUID returns the UID of the namespace kube-system, which no other cluster has but one that
// was made from a copy of its etcd. The error says why it is unknown.
func ClusterUID(ctx context.Context, core corev1client.NamespacesGetter) (string, error) {
	var uid string
	err := kube.Patiently(ctx, func(ctx context.Context) error {
		n, err := core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err == nil {
			uid = string(n.UID)
		}
		return err
	})
	return uid, err
}

// A stateError says that a namespace cannot hold the state. Its cause is the API server's
// error, if any.
type stateError struct {
	text  string
	cause error
}

func (e stateError) Error() string { return e.text }

func (e stateError) Unwrap() error { return e.cause }

func noNamespace(name, state string, cause error) error {
	return ipam.BadInput(stateError{fmt.Sprintf("the state namespace %q %s", name, state), cause},
		"name the one of ip-reaper with --state-namespace, or create it")
}

// inNamespace returns the error of a write to the state namespace: an *ipam.InputError if that
// namespace does not exist or is being deleted.
func inNamespace(err error, name string) error {
	switch {
	case kube.Gone(err, "namespaces", name):
		return noNamespace(name, "does not exist", err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return noNamespace(name, "is being deleted", err)
	}
	return err
}

// OtherStates returns the other namespaces that have a ledger or a lock of ip-reaper, sorted.
// It reads only metadata, from the API server's cache. If it fails, for example for lack of
// rights, it returns what it found along with the error.
func OtherStates(ctx context.Context, raw rest.Interface, own string) ([]string, error) {
	kinds := []struct{ path, name string }{
		{"/api/v1/configmaps", LedgerName},
		{"/apis/coordination.k8s.io/v1/leases", LockName},
	}
	found, failed := make([][]string, len(kinds)), make([]error, len(kinds))
	var lists sync.WaitGroup
	for i, kind := range kinds {
		lists.Go(func() {
			items, err := kube.ListMetadata(ctx, raw, func(get *rest.Request) *rest.Request {
				return get.AbsPath(kind.path).MaxRetries(0).Param("resourceVersion", "0").Param("fieldSelector", metav1.ObjectNameField+"="+kind.name)
			})
			failed[i] = err
			for _, item := range items {
				if item.Name == kind.name && item.Namespace != own {
					found[i] = append(found[i], item.Namespace)
				}
			}
		})
	}
	lists.Wait()
	all := slices.Concat(found...)
	slices.Sort(all)
	return slices.Compact(all), errors.Join(failed...)
}
