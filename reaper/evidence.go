package reaper

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Evidence is what one source says about an allocation.
type Evidence struct {
	Source string `json:"source"` // such as "pod status" or "node n3"
	Says   string `json:"says"`
}

// The sources that have no name of their own.
const (
	fromStore         = "store"
	fromPolicy        = "policy"
	fromPods          = "list of pods"
	fromRuntime       = "container runtime"
	fromPodStatus     = "pod status"
	fromNetworkStatus = "network-status annotation"
	fromCalico        = "Calico annotation"
	fromSiblings      = "group"
	fromProtection    = "protection"
	fromLedger        = "ledger"
)

// Stamp formats a time for people.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// sourceOf returns the place in the pod where it shows the address.
func sourceOf(p Pod, ip netip.Addr) string {
	if i := slices.Index(p.Addresses, ip); i >= 0 && i < p.InStatus {
		return fromPodStatus
	}
	for _, i := range p.Interfaces {
		if slices.Contains(i.Addresses, ip) {
			return fromNetworkStatus
		}
	}
	return fromCalico
}

// lostBy says why the pod does not have the allocation any more: it has ended, or is
// another pod of the same name.
func lostBy(p Pod) Evidence {
	if p.Finished {
		return Evidence{fromPodStatus, "the pod has ended"}
	}
	return Evidence{fromPods, "the pod of that name has the UID " + p.UID}
}

// wantedBy says which ordinals the StatefulSet wants.
func wantedBy(s StatefulSet) Evidence {
	return Evidence{
		"StatefulSet " + s.Namespace + "/" + s.Name,
		fmt.Sprintf("it wants the ordinals %d to %d", s.Start, s.Start+s.Replicas-1),
	}
}

// notReady says that the node is not ready, and since when.
func notReady(n Node) Evidence {
	says := "it is not ready"
	if !n.Since.IsZero() {
		says += " since " + Stamp(n.Since)
	}
	return Evidence{"node " + n.Name, says}
}

// hidden says how many pods may have an address that they do not show.
func hidden(c Census) Evidence {
	return Evidence{fromPods, fmt.Sprintf("%d pods do not show their addresses", c.Hiding())}
}
