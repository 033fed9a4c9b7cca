package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// checkLimits returns a *LimitError with all limits that refuse the plan. It warns of those that
// the run ignores.
func (r *run) checkLimits(n *round) error {
	refusals, ignored := r.refusals(n, n.plan, r.Policy)
	for _, refusal := range ignored {
		r.warn("a limit is ignored: " + refusal.Message)
	}
	if len(refusals) == 0 {
		return nil
	}
	n.refuse(refusals)
	return &judge.LimitError{Refusals: refusals, Released: len(r.earlier.released)}
}

// refuse notes why the plan is refused. What is due stays in its store.
func (n *round) refuse(refusals []judge.Refusal) {
	n.refused = refusals
	planAll(n.attempts, report.Refused)
}

// ErrAnotherStore says that a store outside the API server is not that of earlier runs. It may be
// that of another cluster.
var ErrAnotherStore = errors.New("another store")

// checkStores returns an *InputError if a store is not the one that the ledger has, unless the run
// accepts that. A store that had an identity and has none is another one.
func (r *run) checkStores(n *round, known ledger.Ledger) error {
	others := otherStores(n.inventory, known)
	if len(others) == 0 {
		return nil
	}
	text := strings.Join(others, "; ")
	if r.AcceptNewStore {
		r.warn("another store is accepted: " + text)
		return nil
	}
	refusal := judge.Refusal{
		Limit: ErrAnotherStore.Error(), Message: ErrAnotherStore.Error() + ": " + text,
		Remedy: "check that it is the store of this cluster; if it has replaced the other one, give --accept-new-store once",
	}
	n.refuse([]judge.Refusal{refusal})
	return ipam.BadInput(fmt.Errorf("%w: %s; %s", ErrAnotherStore, text, judge.Released(len(r.earlier.released))), refusal.Remedy)
}

// otherStores says of each store outside the API server that it is not the one that the ledger has.
func otherStores(inv ipam.Inventory, known ledger.Ledger) []string {
	var others []string
	for _, l := range inv.Listings {
		id := known.Stores[l.Backend]
		if l.Outside != nil && id != "" && l.Outside.ID != id {
			others = append(others, fmt.Sprintf("%s: %s is %q, and was %q in earlier runs", l.Backend, l.Outside.Field, l.Outside.ID, id))
		}
	}
	return others
}

// checkRights asks once, before the first write, for the rights to release what is due. Without a
// right, each release of its backend would fail separately.
func (r *run) checkRights(ctx context.Context, attempts []*attempt) {
	open := undecided(attempts)
	if r.Access == nil || len(open) == 0 {
		return
	}
	var due []string
	for _, a := range open {
		if name := a.allocation().Backend; !slices.Contains(due, name) {
			due = append(due, name)
		}
	}
	denied := r.Access(ctx, due)
	r.info.Denied = denied.All != nil || len(denied.Backends) > 0
	if denied.All != nil {
		r.failAndWarn(denied.All)
	}
	for _, name := range due {
		if err := denied.Backends[name]; err != nil && denied.All == nil {
			r.failAndWarn(err)
		}
	}
	for _, a := range open {
		if err := denied.of(a.allocation().Backend); err != nil {
			a.settle(r.logger, report.Failed, err)
		}
	}
	settleSiblings(r.logger, attempts, "its sibling must not be released")
}

// checkClock returns an error if the clock is wrong: with a wrong clock, a grace period
// may end too early, and an allocation may look too old.
func (o Options) checkClock() error {
	if o.ClockSkew == nil {
		return nil
	}
	skew, known := o.ClockSkew()
	most := judge.ClockTolerance(o.Policy)
	if differs := clockDiffers(skew, most); known && differs != "" {
		return fmt.Errorf("%s: nothing is released until they differ by at most %v", differs, most)
	}
	return nil
}

// clockDiffers says that the clock here differs from the API server's by more than most; nothing if it does
// not.
func clockDiffers(skew, most time.Duration) string {
	where := "ahead of"
	if skew < 0 {
		where = "behind"
	}
	if skew.Abs() <= most {
		return ""
	}
	return fmt.Sprintf("the clock here is %v %s the API server's", skew.Abs(), where)
}
