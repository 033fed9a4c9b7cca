package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VirtualMachines is the resource that DefineMachinesT defines.
var VirtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}

// DefineMachinesT defines KubeVirt's VirtualMachineInstances as loosely as KubeVirt does,
// until the test ends.
func (c *Cluster) DefineMachinesT(t testing.TB) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "virtualmachineinstances.yaml")
	if err := os.WriteFile(file, []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: virtualmachineinstances.kubevirt.io}
spec:
  group: kubevirt.io
  names: {kind: VirtualMachineInstance, listKind: VirtualMachineInstanceList, plural: virtualmachineinstances, singular: virtualmachineinstance}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.DefineT(t, file)
}
