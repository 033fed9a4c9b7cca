package reapertest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Store lists its pools and releases nothing.
type Store []ipam.Pool

// Name implements ipam.Backend.
func (Store) Name() string { return "fixed" }

// List implements ipam.Backend.
func (s Store) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		for _, pool := range s {
			if !yield(pool, nil) {
				return
			}
		}
	}
}

// Record implements ipam.Backend. It records the tokens.
func (Store) Record(_ context.Context, as []ipam.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(as))
	for i, a := range as {
		records[i] = fmt.Appendf(nil, "%q", a.Token)
	}
	return records, nil
}

// Restore implements ipam.Backend.
func (Store) Restore(_ context.Context, _ string, rs []ipam.Record, permit ipam.Permit) []error {
	return slices.Repeat([]error{permit()}, len(rs))
}

// Release implements ipam.Backend.
func (Store) Release(_ context.Context, ws []ipam.Warrant) []error {
	return make([]error, len(ws))
}

// Lists are all that a census is taken from. A list of sandboxes that is not nil is that of the
// node on which the run is.
type Lists struct {
	Pods      []census.Pod
	Sets      []census.StatefulSet
	Nodes     []census.Node
	Machines  []census.VirtualMachine
	Sandboxes []string

	Attachments []ipam.Attachment // of the sandboxes
	Stopped     []string          // those of the sandboxes that are not ready
	Boot        string            // of their node
}

// Census takes a census of the lists.
func (l Lists) Census(t testing.TB, scope census.Scope) census.Census {
	t.Helper()
	c, err := census.Take(t.Context(), l.Cluster(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Cluster returns the cluster that has these lists. It is a census.Runtime if there is a list of
// sandboxes.
func (l Lists) Cluster() census.Cluster {
	if l.Sandboxes != nil {
		return runtime{cluster{l}}
	}
	return cluster{l}
}

// A cluster is a census.Cluster with fixed lists.
type cluster struct{ lists Lists }

// Pods implements census.Cluster.
func (c cluster) Pods(context.Context) ([]census.Pod, error) { return c.lists.Pods, nil }

// VirtualMachines implements census.Cluster.
func (c cluster) VirtualMachines(context.Context) ([]census.VirtualMachine, error) {
	return c.lists.Machines, nil
}

// StatefulSets implements census.Cluster.
func (c cluster) StatefulSets(context.Context) ([]census.StatefulSet, error) {
	return c.lists.Sets, nil
}

// Nodes implements census.Cluster.
func (c cluster) Nodes(context.Context) ([]census.Node, error) { return c.lists.Nodes, nil }

// Pod implements census.Cluster.
func (c cluster) Pod(_ context.Context, ref ipam.PodRef) (census.Pod, census.Presence, error) {
	i := slices.IndexFunc(c.lists.Pods, func(p census.Pod) bool { return p.Ref == ref })
	if i < 0 {
		return census.Pod{}, census.Absent, nil
	}
	return c.lists.Pods[i], census.Present, nil
}

// A runtime is a cluster seen from a node.
type runtime struct{ cluster }

// Sandboxes implements census.Runtime.
func (r runtime) Sandboxes(context.Context) ([]census.Sandbox, error) {
	all := make([]census.Sandbox, len(r.lists.Sandboxes))
	for i, id := range r.lists.Sandboxes {
		all[i] = census.Sandbox{ID: id, Pod: ipam.PodRef{Namespace: "node", Name: id}, Ready: !slices.Contains(r.lists.Stopped, id)}
		for _, a := range r.lists.Attachments {
			if a.Sandbox == id {
				all[i].Attachments = append(all[i].Attachments, a)
			}
		}
	}
	return all, nil
}

// Boot implements census.Runtime.
func (r runtime) Boot() string { return r.lists.Boot }

// Unclaimed implements census.Runtime.
func (runtime) Unclaimed() string { return "" }
