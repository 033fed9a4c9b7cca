package cluster

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtin has the built-in resources that a reaper, a plugin or a test may write.
var builtin = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "resourcequotas"},
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "serviceaccounts"},
	namespaceResource,
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "events"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "batch", Version: "v1", Resource: "cronjobs"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// An object is an object of any kind that matters here.
type object struct {
	gvr schema.GroupVersionResource
	*unstructured.Unstructured
}

// key returns resource.group/namespace/name, without empty parts.
func (o object) key() string {
	parts := []string{o.gvr.GroupResource().String(), o.GetName()}
	if o.GetNamespace() != "" {
		parts = []string{parts[0], o.GetNamespace(), o.GetName()}
	}
	return strings.Join(parts, "/")
}

// each calls fn for every object of the builtin resources and of every defined custom resource,
// except for what the API server itself writes: the lease that each of its processes renews.
func (c *Cluster) each(ctx context.Context, fn func(object) error) error {
	resources := append([]schema.GroupVersionResource{Definitions}, builtin...)
	custom, err := c.customResources(ctx)
	if err != nil {
		return err
	}
	resources = append(resources, custom...)
	lists, err := c.lists(ctx, resources)
	if err != nil {
		return err
	}
	for i, list := range lists {
		for j := range list.Items {
			o := object{resources[i], &list.Items[j]}
			if o.GetLabels()["apiserver.kubernetes.io/identity"] != "" {
				continue
			}
			if err := fn(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// lists lists the resources in parallel: the API server takes a second for the first list of a
// custom resource.
func (c *Cluster) lists(ctx context.Context, resources []schema.GroupVersionResource) ([]*unstructured.UnstructuredList, error) {
	lists := make([]*unstructured.UnstructuredList, len(resources))
	err := Each(len(resources), resources, func(i int, gvr schema.GroupVersionResource) (err error) {
		lists[i], err = c.Dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err): // defined a moment ago, or being deleted: not served
			lists[i] = &unstructured.UnstructuredList{}
		case err != nil:
			return fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
		}
		return nil
	})
	return lists, err
}

// customResources returns the stored version of every custom resource.
func (c *Cluster) customResources(ctx context.Context) ([]schema.GroupVersionResource, error) {
	list, err := c.Dynamic.Resource(Definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", Definitions.GroupResource(), err)
	}
	var resources []schema.GroupVersionResource
	for _, crd := range list.Items {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			v, ok := v.(map[string]any)
			if !ok || v["storage"] != true || v["served"] != true {
				continue
			}
			name, _ := v["name"].(string)
			resources = append(resources, schema.GroupVersionResource{
				Group: group, Version: name, Resource: plural,
			})
		}
	}
	return resources, nil
}

// Versions returns the resource version of every pool, pod, ConfigMap, lease, event and so on,
// including every custom resource, by resource.group/namespace/name. If two calls return the same,
// nothing was written between them.
func (c *Cluster) Versions(ctx context.Context) (map[string]string, error) {
	versions := map[string]string{}
	err := c.each(ctx, func(o object) error {
		versions[o.key()] = o.GetResourceVersion()
		return nil
	})
	return versions, err
}

func (c *Cluster) objects(ctx context.Context) (map[string]bool, error) {
	keys := map[string]bool{}
	err := c.each(ctx, func(o object) error {
		keys[o.key()] = true
		return nil
	})
	return keys, err
}

// Reset deletes every object that did not exist when the cluster had started, immediately and
// regardless of finalizers, except custom resource definitions. No other test may use the cluster
// meanwhile.
func (c *Cluster) Reset(ctx context.Context) error {
	var objects, namespaces []object
	err := c.each(ctx, func(o object) error {
		switch {
		case c.baseline[o.key()] || o.gvr == Definitions:
		case o.gvr == namespaceResource:
			namespaces = append(namespaces, o)
		default:
			objects = append(objects, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = Each(deletesAtOnce, objects, func(_ int, o object) error { return c.remove(ctx, o) })
	if err != nil {
		return err
	}
	return Each(deletesAtOnce, namespaces, func(_ int, o object) error { return c.removeNamespace(ctx, o) })
}

// deletesAtOnce is how many objects Reset deletes at the same time.
const deletesAtOnce = 16

// remove deletes an object regardless of its finalizers.
func (c *Cluster) remove(ctx context.Context, o object) error {
	client := c.Dynamic.Resource(o.gvr).Namespace(o.GetNamespace())
	if len(o.GetFinalizers()) > 0 {
		o.SetFinalizers(nil)
		if _, err := client.Update(ctx, o.Unstructured, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove finalizers of %s: %w", o.key(), err)
		}
	}
	err := client.Delete(ctx, o.GetName(), metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", o.key(), err)
	}
	return nil
}

// removeNamespace deletes an empty namespace and finalizes it: there is no controller here that
// would.
func (c *Cluster) removeNamespace(ctx context.Context, o object) error {
	if err := c.remove(ctx, o); err != nil {
		return err
	}
	namespaces := c.Kube.CoreV1().Namespaces()
	namespace, err := namespaces.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err == nil {
		namespace.Spec.Finalizers = nil
		_, err = namespaces.Finalize(ctx, namespace, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("finish the deletion of %s: %w", o.key(), err)
	}
	return nil
}
