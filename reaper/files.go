package reaper

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// Files say what a dry run must know if it reads dumped files in place of a cluster.
//
// Files lack two of the four things that a release needs, and the report warns of that. They do not say
// that the pods were listed after the allocations. Without Remembered, every grace period counts as over.
// If the plan is over a limit, the report shows it as refused, and warns: that is no error.
type Files struct {
	Remembered ledger.Ledger // that of the dump; empty if it has none
	Whole      bool          // they have every list of the cluster
}

var errTwice = errors.New("the files have this pool twice, with different contents; the first one counts")

// readFrom returns the listings of the stores of which files may have something, each pool once.
func readFrom(listings []ipam.Listing) []ipam.Listing {
	found := slices.DeleteFunc(listings, func(l ipam.Listing) bool { return l.Status == ipam.StatusSkipped })
	for i := range found {
		once(&found[i])
	}
	return found
}

// once makes a pool that files have twice count once. They do not say which of two that differ is newer.
func once(l *ipam.Listing) {
	first := make(map[string]ipam.Pool)
	l.Pools = slices.DeleteFunc(l.Pools, func(pool ipam.Pool) bool {
		have, again := first[pool.Name]
		switch {
		case !again:
			first[pool.Name] = pool
		case !reflect.DeepEqual(have, pool):
			l.Errors = append(l.Errors, &ipam.PoolError{Pool: pool.Name, Err: errTwice})
			l.Status, l.Whole, l.Message = ipam.StatusPartial, false, l.Errors[0].Error()
		}
		return again
	})
}

// unreadIn returns what the files of a listing lack altogether; nil if they have a part of it. The listing of a
// part has failed.
func unreadIn(l ipam.Listing) *ipam.UnreadError {
	unread, is := errors.AsType[*ipam.UnreadError](errors.Join(l.Errors...))
	if is && unread.Part && !l.Protects {
		return nil
	}
	return unread
}

// dropUnread takes the stores out of the inventory of which the files have nothing. It returns what the
// protectors could not read.
func dropUnread(inv *ipam.Inventory) (unread []*ipam.UnreadError) {
	inv.Listings = slices.DeleteFunc(inv.Listings, func(l ipam.Listing) bool {
		lacks := unreadIn(l) != nil
		if lacks && l.Protects {
			unread = append(unread, &ipam.UnreadError{List: "objects that inspect reads for backends." + l.Backend})
		}
		return lacks
	})
	return unread
}

// holdForUnread protects the allocations that something in a list may keep which the files lack.
func (s *stock) holdForUnread(objects []*ipam.UnreadError) {
	for a := range s.inventory.Allocations() {
		of := objects
		if unread := s.census.Unread(a); unread != nil {
			of = []*ipam.UnreadError{unread}
		}
		if len(of) > 0 && a.Protected == "" && a.HoldsAddress() {
			a.Protected = of[0].Protects()
		}
	}
}

// withoutHistory returns the ledger by which files are judged that have none: every grace period is over,
// and it knows the nodes, as in a later run.
func (r *run) withoutHistory(n *round) ledger.Ledger {
	known := n.ledger
	if r.lasts {
		return known
	}
	for range 2 {
		verdicts := r.judge(n.now, r.Policy, n.stock, known)
		known = judge.NextLedger(known, verdicts, census.Census{}, n.inventory, time.Time{}).LongAgo()
	}
	return known
}

// warnOfDump says what files lack.
func (r *run) warnOfDump(v judge.Verdicts) {
	if r.Cluster == nil {
		r.warn("no pods were given, so every allocation is held")
		return
	}
	if !r.lasts {
		r.caveat("files without a ledger cannot show how long addresses have leaked: every grace period counts as over, and the pods as listed last")
	}
	held := make(map[string]int)
	for _, d := range v.Decisions {
		if d.Reason == judge.Protected && strings.HasPrefix(d.Note, ipam.UnreadSays) {
			held[d.Note]++
		}
	}
	for _, lack := range slices.Sorted(maps.Keys(held)) {
		r.caveat(fmt.Sprintf("%s: held for that: %d", lack, held[lack]))
	}
}

// warnOfRefusal says that a run would refuse the plan.
func (r *run) warnOfRefusal(n *round) {
	refusals := n.plan.Check(r.Policy.Limits, n.census)
	if len(refusals) == 0 {
		return
	}
	n.refuse(refusals)
	for _, refusal := range refusals {
		r.warn("a run would refuse this plan: " + refusal.Message)
	}
}

// warnOfMissingNamespaces names the namespaces of orphans in which the census has no pods
// at all. A dump of one namespace looks like that.
func (r *run) warnOfMissingNamespaces(n round) {
	populated := make(map[string]bool)
	for _, pod := range n.census.Pods() {
		populated[pod.Ref.Namespace] = true
	}
	var missing []string
	for _, o := range n.plan.Orphans() {
		namespace := o.Allocation().Owner.Pod.Namespace
		if namespace != "" && !populated[namespace] {
			missing = append(missing, namespace)
		}
	}
	if len(missing) == 0 || n.census.Size() == 0 || r.Files.Whole {
		return
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	r.caveat("the dump has no pods of the namespaces " + printable.Some(missing) + ": was it dumped with -A?")
}
