package ipam

import (
	"encoding/json"
	"fmt"
)

// A Record is a copy of an allocation, as its store had it before the release.
type Record struct {
	Backend string     `json:"backend"`
	Pool    string     `json:"pool"`
	Key     string     `json:"key"`
	IP      string     `json:"ip,omitzero"` // empty if the allocation has no address
	Owner   EntryOwner `json:"owner"`

	// Node is where a run last saw the pod, and Boot and Mirror are set if its sandbox may outlive
	// it there, as in a ledger.Place. They are empty if no run saw it, or if the store itself names
	// that node.
	Node   string `json:"node,omitzero"`
	Boot   string `json:"boot,omitzero"`
	Mirror bool   `json:"mirror,omitzero"`

	// Stored is the data that Backend.Record returned.
	Stored json.RawMessage `json:"stored"`

	// InUse is set by a restore if the pod still has the address, as its status says. Then it
	// goes back even if pods no longer get it.
	InUse bool `json:"-"`
}

// String names the record for people.
func (r Record) String() string {
	return fmt.Sprintf("the record of backend %q, pool %q, key %q", r.Backend, r.Pool, r.Key)
}

// An EntryOwner is the owner of an allocation, as far as the store names it.
type EntryOwner struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Sandbox   string `json:"sandbox,omitempty"`
	Interface string `json:"interface,omitempty"`
	Node      string `json:"node,omitempty"`
}

// Entry returns the owner as reports and records have it.
func (o Owner) Entry() EntryOwner {
	return EntryOwner{Namespace: o.Pod.Namespace, Pod: o.Pod.Name, Sandbox: o.Sandbox, Interface: o.Interface, Node: o.Node}
}

// PodRef returns the pod; zero if the store names none.
func (o EntryOwner) PodRef() PodRef { return PodRef{Namespace: o.Namespace, Name: o.Pod} }
