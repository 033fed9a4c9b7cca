package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

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

// HasNamespace reports whether the cluster has a namespace, as far as that can be read.
func HasNamespace(ctx context.Context, core corev1client.NamespacesGetter, name string) census.Presence {
	_, err := core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case kube.Gone(err, "namespaces", name):
		return census.Absent
	case err != nil:
		return census.Unknown
	}
	return census.Present
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

func noNamespace(name, state string, cause error) error {
	return ipam.BadInput(ipam.Worded(fmt.Sprintf("the state namespace %q %s", name, state), cause),
		"name the one of ip-reaper with --state-namespace, or install it: see docs/install.md")
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
	raw = kube.InPages(raw)
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

// The installed policy is a ConfigMap in the state namespace, which the pods of the CronJob
// mount. The manifests and the chart use these names.
const (
	PolicyName = "ip-reaper-policy"
	policyKey  = "policy.yaml"
)

// InstalledPolicy returns the text of the installed policy and the version of its ConfigMap, or
// nothing if the API server says that there is none. An *ipam.InputError says that the ConfigMap has
// no policy; any other error leaves open whether one is installed.
func InstalledPolicy(ctx context.Context, core corev1client.ConfigMapsGetter, namespace string) (text []byte, version string, err error) {
	var cm *corev1.ConfigMap
	err = kube.Patiently(ctx, func(ctx context.Context) (err error) {
		cm, err = core.ConfigMaps(namespace).Get(ctx, PolicyName, metav1.GetOptions{})
		return err
	})
	switch {
	case kube.Gone(err, "configmaps", PolicyName):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	}
	policy, ok := cm.Data[policyKey]
	if !ok {
		return nil, "", ipam.BadInput(fmt.Errorf("policy: ConfigMap %s/%s has no key %s", namespace, PolicyName, policyKey),
			"apply the manifests again; a dry run takes a policy of yours with --policy FILE")
	}
	return []byte(policy), cm.ResourceVersion, nil
}

// InstallPolicy makes a text the installed policy, if the ConfigMap still has the version, or if there is
// still none for an empty one. Nothing else in the ConfigMap changes.
func InstallPolicy(ctx context.Context, core corev1client.ConfigMapsGetter, namespace, version, text string) error {
	maps := core.ConfigMaps(namespace)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: PolicyName, ResourceVersion: version}, Data: map[string]string{policyKey: text}}
	patch, err := json.Marshal(cm)
	if version == "" {
		_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	} else if err == nil {
		_, err = maps.Patch(ctx, PolicyName, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return ipam.Worded("the installed policy changed meanwhile, and nothing was written: look again", err)
	}
	return err
}

// PolicyVersion returns the version of the ConfigMap of the installed policy, of which it reads only
// the metadata; empty if there is none. The error wraps ErrAgain or ErrRefused.
func PolicyVersion(ctx context.Context, core corev1client.CoreV1Interface, namespace string) (string, error) {
	return versionOf(ctx, core, namespace, PolicyName)
}

// metadataOnly asks for only the metadata of an object. An API server that does not understand that
// sends all of it.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// versionOf returns the version of a ConfigMap, of which it reads only the metadata; empty if the API
// server says that there is none. The error wraps ErrAgain or ErrRefused.
func versionOf(ctx context.Context, core corev1client.CoreV1Interface, namespace, name string) (string, error) {
	data, err := kube.Send(ctx, core.RESTClient().Get().Namespace(namespace).Resource("configmaps").Name(name).
		SetHeader("Accept", metadataOnly).MaxRetries(0))
	switch {
	case kube.Gone(err, "configmaps", name):
		return "", nil
	case err != nil:
		return "", kube.Answered(err)
	}
	var object metav1.PartialObjectMetadata
	if err := kube.Decode(data, &object); err != nil {
		return "", fmt.Errorf("%w: decode: %w", ipam.ErrRefused, err)
	}
	if object.ResourceVersion == "" {
		return "", fmt.Errorf("%w: it has no resourceVersion", ipam.ErrRefused)
	}
	return object.ResourceVersion, nil
}

// A Need is one verb on one resource that a run is about to use. An empty Name means all objects,
// and an empty Namespace all namespaces.
type Need authorizationv1.ResourceAttributes

// String returns the need as people write it: "patch ippools.whereabouts.cni.cncf.io".
func (n Need) String() string {
	text := n.Verb + " " + n.Resource
	if n.Group != "" {
		text += "." + n.Group
	}
	if n.Name != "" {
		text += " " + n.Name
	}
	if n.Namespace != "" {
		text += " in namespace " + n.Namespace
	}
	return text
}

const (
	reviewTimeout = 5 * time.Second // of all reviews together
	reviewsAtOnce = 8
)

// Missing returns the needs that the API server says it would deny this account, in order. It
// sends a SelfSubjectAccessReview for each, which changes nothing. If the API server does not
// answer all of them, Missing returns an error and no needs.
func Missing(ctx context.Context, raw rest.Interface, needs []Need) ([]Need, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	allowed := make([]bool, len(needs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(reviewsAtOnce)
	for i, need := range needs {
		g.Go(func() (err error) {
			allowed[i], err = review(ctx, raw, need)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("review access: %w", err)
	}
	var missing []Need
	for i, need := range needs {
		if !allowed[i] {
			missing = append(missing, need)
		}
	}
	return missing, nil
}

// review asks for one need.
func review(ctx context.Context, raw rest.Interface, need Need) (allowed bool, err error) {
	const resource = "selfsubjectaccessreviews"
	body, err := json.Marshal(authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: (*authorizationv1.ResourceAttributes)(&need)},
	})
	if err != nil {
		return false, err
	}
	data, err := kube.Send(ctx, raw.Post().AbsPath("/apis/authorization.k8s.io/v1/"+resource).Body(body))
	if err != nil {
		return false, err
	}
	var answer authorizationv1.SelfSubjectAccessReview
	if err := kube.Decode(data, &answer); err != nil {
		return false, fmt.Errorf("decode: %w", err)
	}
	if answer.Kind != "SelfSubjectAccessReview" {
		return false, fmt.Errorf("the answer is a %q", answer.Kind)
	}
	return answer.Status.Allowed, nil
}
