package cluster

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// whereaboutsCRDs returns the files of the definitions that Whereabouts itself ships.
func whereaboutsCRDs(ctx context.Context) ([]string, error) {
	dir, err := assets.ModuleDir(ctx, "github.com/k8snetworkplumbingwg/whereabouts")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, kind := range []string{"ippools", "nodeslicepools", "overlappingrangeipreservations"} {
		files = append(files, filepath.Join(dir, "doc", "crds", "whereabouts.cni.cncf.io_"+kind+".yaml"))
	}
	return files, nil
}

// NetworkAttachmentCRD returns the file with the definition of network attachments, for
// Options.CRDs: a cluster without Multus lacks it.
func NetworkAttachmentCRD() (string, error) { return definition("network-attachments.yaml") }

// ReservedIPCRD returns the file with the definitions of resources that reserve addresses, one
// namespaced and one cluster-wide, for Options.CRDs.
func ReservedIPCRD() (string, error) { return definition("reserved-ips.yaml") }

// OtherReservedIPCRDs returns the file with the definitions of other projects' resources that reserve
// addresses.
func OtherReservedIPCRDs() (string, error) { return definition("reserved-ips-others.yaml") }

// definition returns the path of a file of this package.
func definition(file string) (string, error) {
	root, err := assets.Root()
	return filepath.Join(root, "kit", "cluster", file), err
}

// Definitions is the resource of custom resource definitions.
var Definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// DefineT defines the custom resources of files until the test ends, which deletes all their
// objects.
func (c *Cluster) DefineT(t testing.TB, files ...string) {
	t.Helper()
	options := envtest.CRDInstallOptions{Paths: files, ErrorIfPathMissing: true, MaxTime: time.Minute}
	crds, err := envtest.InstallCRDs(c.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(c.Config, options); err != nil {
			t.Error(err)
		}
		for _, crd := range crds {
			resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Resource: crd.Spec.Names.Plural}
			AwaitT(t, "the end of "+crd.Name, func() bool {
				list, err := c.Kube.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
				listed := err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource })
				// The test's own context has ended by now.
				_, err = c.Dynamic.Resource(resource).List(context.WithoutCancel(t.Context()), metav1.ListOptions{Limit: 1})
				return !listed && apierrors.IsNotFound(err)
			})
		}
	})
}

// UndefineT deletes the definition of a custom resource, and thus its objects, until the test ends.
// The group must have no other resource.
func (c *Cluster) UndefineT(t testing.TB, resource schema.GroupVersionResource) {
	t.Helper()
	definitions := c.Dynamic.Resource(Definitions)
	name := resource.GroupResource().String()
	definition, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	served := func() bool {
		_, err := c.Kube.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
		return !apierrors.IsNotFound(err)
	}
	if err := definitions.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	AwaitT(t, "the end of "+name, func() bool { return !served() })
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		again := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": definition.GetAPIVersion(), "kind": definition.GetKind(),
			"metadata": map[string]any{"name": name},
			"spec":     definition.Object["spec"],
		}}
		again.SetAnnotations(definition.GetAnnotations())
		if _, err := definitions.Create(ctx, again, metav1.CreateOptions{}); err != nil {
			t.Error(err)
			return
		}
		AwaitT(t, name, func() bool {
			_, err := c.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
			return err == nil && served()
		})
	})
}

// AwaitT polls until so returns true, and fails the test after 30 s.
func AwaitT(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}
