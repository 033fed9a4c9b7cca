package census

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Sandbox is a pod sandbox that a container runtime has, in any state.
type Sandbox struct {
	ID    string
	Pod   ipam.PodRef
	UID   string // of the pod
	Ready bool
}

// A Runtime is a Cluster that also lists the sandboxes of the node on which the run is.
type Runtime interface {
	Cluster

	// Sandboxes lists every sandbox, in any state. It is complete or an error. A
	// sandbox that is being set up may not be there yet, although its allocation is.
	Sandboxes(ctx context.Context) ([]Sandbox, error)
}

// sandboxList has the sandboxes of a node. The zero sandboxList was not read.
type sandboxList struct {
	read bool
	ids  []string // in ascending order
}

// sandboxesOf lists the sandboxes of the cluster's node, if it is a Runtime.
func sandboxesOf(ctx context.Context, cluster Cluster) (sandboxList, error) {
	runtime, ok := cluster.(Runtime)
	if !ok {
		return sandboxList{}, nil
	}
	sandboxes, err := runtime.Sandboxes(ctx)
	if err != nil {
		return sandboxList{}, fmt.Errorf("list the sandboxes of the container runtime: %w", err)
	}
	ids := make([]string, len(sandboxes))
	for i, s := range sandboxes {
		ids[i] = s.ID
	}
	return newSandboxList(ids), nil
}

// newSandboxList returns the list of these sandboxes.
func newSandboxList(ids []string) sandboxList {
	return sandboxList{true, slices.Sorted(slices.Values(ids))}
}

// has reports whether there is a sandbox whose ID begins with the given one.
func (l sandboxList) has(id string) bool {
	at, _ := slices.BinarySearch(l.ids, id)
	return at < len(l.ids) && strings.HasPrefix(l.ids[at], id)
}
