package calico_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// plurals are the custom resources of which the forms have objects, by kind.
var plurals = map[string]string{
	"BlockAffinity": "blockaffinities", "ClusterInformation": "clusterinformations",
	"IPAMBlock": "ipamblocks", "IPAMHandle": "ipamhandles", "IPPool": "ippools",
}

// apiVersions are those of the API groups.
var apiVersions = map[string]string{groupV1: "v1", groupV3: "v3"}

// definition is our own of a resource: with it, the API server keeps all fields.
const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Cluster
  names: {kind: %[4]s, listKind: %[4]sList, plural: %[1]s, singular: %[5]s}
  versions:
  - name: %[3]s
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// defined is the API group that the cluster of the test binary has.
var defined string

// define makes the group the one of the two that is defined.
func define(t *testing.T, c *cluster.Cluster, group string) {
	t.Helper()
	if defined == group {
		return
	}
	if defined != "" {
		undefine(t, c)
	}
	options := definitions(t, group)
	if _, err := envtest.InstallCRDs(c.Config, options); err != nil {
		t.Fatal(err)
	}
	defined = group
}

// undefine deletes the definitions.
func undefine(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	c.ResetT(t)
	if err := envtest.UninstallCRDs(c.Config, definitions(t, defined)); err != nil {
		t.Fatal(err)
	}
	cluster.AwaitT(t, "the end of "+defined, func() bool {
		_, err := c.Kube.Discovery().ServerResourcesForGroupVersion(defined + "/" + apiVersions[defined])
		return apierrors.IsNotFound(err)
	})
	defined = ""
}

// definitions are those of a group.
func definitions(t *testing.T, group string) envtest.CRDInstallOptions {
	t.Helper()
	dir := t.TempDir()
	for kind, plural := range plurals {
		text := fmt.Sprintf(definition, plural, group, apiVersions[group], kind, strings.ToLower(kind))
		if err := os.WriteFile(filepath.Join(dir, plural+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return envtest.CRDInstallOptions{Paths: []string{dir}, MaxTime: time.Minute}
}
