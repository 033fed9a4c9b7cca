package kube

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The pods of other nodes are not asked for, and nothing else is.
func TestNodePodsAreThoseOfTheNode(t *testing.T) {
	for version, want := range map[string][]string{
		"v1.34.0": {"/version", "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-a"},
		"v1.33.0": {
			"/version", "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-a&limit=500",
			"/api/v1/pods?continue=2&fieldSelector=spec.nodeName%3Dnode-a&limit=5000",
		},
	} {
		s := &podServer{version: version, pods: namedPods(3)}
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		c := clusterAt(t, server.URL)
		c.node = "node-a"
		n := NodePods{c}
		pods, err := n.Pods(t.Context())
		if err != nil || len(pods) != 3 {
			t.Errorf("%s: Pods = %d, %v, want 3", version, len(pods), err)
		}
		machines, machinesErr := n.VirtualMachines(t.Context())
		sets, setsErr := n.StatefulSets(t.Context())
		nodes, nodesErr := n.Nodes(t.Context())
		if len(machines)+len(sets)+len(nodes) > 0 || machinesErr != nil || setsErr != nil || nodesErr != nil {
			t.Errorf("%s: there is more than pods: %v, %v, %v", version, machines, sets, nodes)
		}
		if diff := cmp.Diff(want, s.asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", version, diff)
		}
	}
}
