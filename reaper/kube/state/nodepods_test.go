package state

import (
	"net/http"
	"testing"
)

// Only the node's own pods are requested: otherwise every node would ask for all pods of the
// cluster, and it has no right to list nodes.
func TestNodePodsAreThoseOfTheNode(t *testing.T) {
	c := newCluster(t, map[string]http.HandlerFunc{"/api/v1/pods": func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("fieldSelector"); got != "spec.nodeName=node-a" {
			t.Errorf("the field selector is %q", got)
		}
		inProtobuf.say(listOf(running(nil)))(w, r)
	}})
	c.node = "node-a"
	pods, err := c.Pods(t.Context())
	if err != nil || len(pods) != 1 {
		t.Errorf("Pods = %d, %v, want 1", len(pods), err)
	}
	machines, machinesErr := c.VirtualMachines(t.Context())
	sets, setsErr := c.StatefulSets(t.Context())
	nodes, nodesErr := c.Nodes(t.Context())
	if len(machines)+len(sets)+len(nodes) > 0 || machinesErr != nil || setsErr != nil || nodesErr != nil {
		t.Errorf("there is more than pods: %v, %v, %v", machines, sets, nodes)
	}
}
