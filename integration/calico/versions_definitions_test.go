package calico_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// plurals are the custom resources of which the forms have objects, by kind.
var plurals = map[string]string{
	"BlockAffinity": "blockaffinities", "ClusterInformation": "clusterinformations",
	"IPAMBlock": "ipamblocks", "IPAMHandle": "ipamhandles", "IPPool": "ippools",
}

// definition is our own of a resource of groupV3: with it, the API server keeps all fields.
const definition = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.projectcalico.org}
spec:
  group: projectcalico.org
  scope: Cluster
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]s, singular: %[3]s}
  versions:
  - name: v3
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// proveAll proves all forms in a cluster that also defines groupV3. Only the group that a form is
// loaded into has a ClusterInformation, and is in use.
func proveAll(t *testing.T, forms ...form) {
	t.Helper()
	var definitions strings.Builder
	for kind, plural := range plurals {
		fmt.Fprintf(&definitions, definition, plural, kind, strings.ToLower(kind))
	}
	file := filepath.Join(t.TempDir(), "definitions.yaml")
	if err := os.WriteFile(file, []byte(definitions.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster.StartT(t).DefineT(t, file)
	for _, f := range forms {
		t.Run(f.name, f.prove)
	}
}
