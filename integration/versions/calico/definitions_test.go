package calico_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// defined is set once the cluster of the test binary has the definitions.
var defined bool

// define makes the cluster define both groups. Only the one that a form is loaded into has a
// ClusterInformation, and is in use.
func define(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if defined {
		return
	}
	dir := t.TempDir()
	for group, version := range apiVersions {
		for kind, plural := range plurals {
			text := fmt.Sprintf(definition, plural, group, version, kind, strings.ToLower(kind))
			if err := os.WriteFile(filepath.Join(dir, plural+"."+group+".yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{Paths: []string{dir}, MaxTime: time.Minute}); err != nil {
		t.Fatal(err)
	}
	defined = true
}
