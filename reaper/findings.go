package reaper

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

const (
	findingsTimeout = 30 * time.Second // for looking at all findings again
	mostFindings    = 100              // that are looked at again
	toldFindings    = 10               // of each kind, in warnings
	mostEndpoints   = 1000             // that are read
)

// find finds what is wrong with the addresses that pods show, and says so. Stores and pods were
// listed one after the other, so it looks at both again: a finding is told if it is still so. It runs
// after the releases, because no verdict rests on it, and what a backend remembers of its list must
// not change before.
func (r *run) find(ctx context.Context) {
	n := &r.round
	if r.Cluster == nil || n.census.Began().IsZero() || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, findingsTimeout)
	defer cancel()
	if n.census.OnNode() {
		r.findOnNode(ctx)
		return
	}
	found := n.layout.Findings(n.inventory, n.census)
	if len(found) == 0 {
		return
	}
	if r.Files != nil { // they would say the same again
		r.tell(found)
		return
	}
	found = r.stillUnrecorded(ctx, found) // first: in a large cluster, many pods start between the lists
	var ofPods, confirmed []report.Finding
	for _, proved := range []bool{true, false} { // whoever may edit pods can make any number of those that are not
		for _, f := range found {
			switch {
			case f.Proved() != proved:
			case f.Kind == report.Overlap: // of no pod
				confirmed = append(confirmed, f)
			default:
				ofPods = append(ofPods, f)
			}
		}
	}
	rest := len(ofPods) - min(len(ofPods), mostFindings)
	ofPods = ofPods[:len(ofPods)-rest]
	look := r.lookAgain(ctx, ofPods)
	for _, f := range ofPods {
		if f, still := f.Confirmed(look); still {
			confirmed = append(confirmed, f)
		}
	}
	slices.SortStableFunc(confirmed, func(a, b report.Finding) int { return cmp.Compare(a.Kind, b.Kind) })
	r.tell(confirmed)
	if rest > 0 {
		r.warn(printable.Counted(rest, "more address") + " looked wrong, and got no second look")
	}
}

// tell keeps findings for the report, and warns of the first ones of each kind that the selection matches.
func (r *run) tell(found []report.Finding) {
	r.round.found = found
	told := make(map[report.FindingKind]int)
	for _, f := range r.round.layout.Selected(found, r.round.selection) {
		if told[f.Kind]++; told[f.Kind] <= toldFindings {
			r.warn(f.String())
		}
	}
	for _, kind := range report.FindingKinds() {
		if more := told[kind] - toldFindings; more > 0 {
			r.warn(fmt.Sprintf("%s of the kind %s: run -o json has all", printable.Counted(more, "more finding"), kind))
		}
	}
}

// stillUnrecorded returns the findings without those whose address the store has by now: its pod may
// have got it after the store was listed. If a store cannot be listed again, none is left.
func (r *run) stillUnrecorded(ctx context.Context, found []report.Finding) []report.Finding {
	n := &r.round
	unrecorded := func(f report.Finding) bool { return f.Kind == report.Unrecorded }
	if !slices.ContainsFunc(found, unrecorded) {
		return found
	}
	inv, ok := r.listAgain(ctx)
	if !ok {
		return slices.DeleteFunc(found, unrecorded)
	}
	still := make(map[string]bool)
	for _, f := range n.layout.Findings(inv, n.census) {
		still[f.Network+" "+f.IP] = unrecorded(f)
	}
	return slices.DeleteFunc(found, func(f report.Finding) bool { return unrecorded(f) && !still[f.Network+" "+f.IP] })
}

// listAgain lists the stores again that were listed whole. If one cannot be, it warns and reports false.
func (r *run) listAgain(ctx context.Context) (inv ipam.Inventory, ok bool) {
	var again []ipam.Backend
	for _, b := range r.Backends {
		if slices.ContainsFunc(r.round.inventory.Listings, func(l ipam.Listing) bool { return l.Backend == b.Name() && l.Whole }) {
			again = append(again, b)
		}
	}
	inv = ipam.TakeInventory(ctx, again, func(string) bool { return true })
	for _, l := range inv.Listings {
		if !l.Whole {
			r.warn("what pods show looks unrecorded, and " + l.Backend + " could not be listed again to tell of it: " + l.Message)
		}
	}
	return inv, inv.Complete()
}

// findOnNode is find on a node. The stores are listed again before the sandboxes: an ADD makes the lease
// before the entry, and a DEL removes it before.
func (r *run) findOnNode(ctx context.Context) {
	n := &r.round
	found := n.layout.FindingsOnNode(n.inventory, n.census)
	if len(found) == 0 {
		return
	}
	inv, ok := r.listAgain(ctx)
	if !ok {
		return
	}
	census, err := n.census.Again(ctx, r.Cluster)
	if err != nil {
		r.warn("what pods have looks unrecorded, and the sandboxes could not be listed again to tell of it: " + printable.Error(err))
		return
	}
	again := n.layout.FindingsOnNode(inv, census)
	r.tell(slices.DeleteFunc(found, func(f report.Finding) bool {
		return !slices.ContainsFunc(again, func(other report.Finding) bool { return reflect.DeepEqual(f, other) })
	}))
}

// lookAgain reads the pods of findings by name. A pod that could not be read is unknown.
func (r *run) lookAgain(ctx context.Context, found []report.Finding) func(ipam.PodRef) (census.Pod, census.Presence) {
	refs := make(map[ipam.PodRef]bool) // a pod may show many addresses
	for _, f := range found {
		for ref := range f.Pods {
			refs[ref] = true
		}
	}
	looks, failed := readPods(ctx, r.Cluster, maps.Keys(refs)), make(map[string]error)
	for ref, l := range looks {
		if l.Err != nil {
			failed[ref.String()] = l.Err
		}
	}
	if names := slices.Sorted(maps.Keys(failed)); len(names) > 0 {
		r.warn(fmt.Sprintf("what pods show looks wrong, and %s could not be read again to tell of it: %s",
			printable.Counted(len(names), "pod"), printable.Error(failed[names[0]])))
	}
	return func(ref ipam.PodRef) (census.Pod, census.Presence) { return looks[ref].Pod, looks[ref].Presence }
}

// findEndpoints finds what stores have for the sandboxes of addresses that are due, and that a release
// leaves: see ipam.Endpointer. The pod must be gone, since that may be told to be deleted. What cannot
// be read is a warning.
func (r *run) findEndpoints(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, findingsTimeout)
	defer cancel()
	r.round.endpoints = make(map[int]string)
	for _, b := range r.Backends {
		endpointer, ok := b.(ipam.Endpointer)
		if !ok {
			continue
		}
		var due []*ipam.Allocation
		var indices []int
		for _, a := range r.round.attempts {
			if d := a.decision; d != nil && d.Allocation.Backend == b.Name() && d.Verdict == judge.Orphaned && d.Reason == judge.PodAbsent {
				due, indices = append(due, d.Allocation), append(indices, a.index)
			}
		}
		if len(due) == 0 {
			continue
		}
		if more := len(due) - mostEndpoints; more > 0 {
			due = due[:mostEndpoints]
			r.warn(fmt.Sprintf("%s: it was not looked whether endpoints have %d more addresses of gone pods", b.Name(), more))
		}
		var failed error
		for i, e := range endpointer.Endpoints(ctx, due) {
			failed = cmp.Or(failed, e.Err)
			if e.Has(due[i]) {
				r.round.endpoints[indices[i]] = e.Name
			}
		}
		if failed != nil {
			r.warn(b.Name() + ": it is unknown whether endpoints of gone pods still have their addresses: " + printable.Error(failed))
		}
	}
}
