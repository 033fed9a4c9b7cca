package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// doubt remembers a census that is not believed, and since when the figures have been
// that low. If the census is believed and only the plan is over a limit, there is no
// doubt any more. Nothing else is remembered of such a run, except which pods hang.
func (r *run) doubt(ctx context.Context, refusal error, memory ledger.Ledger, known bool, c census.Census, now time.Time, decisions []judge.Decision) {
	var limit *judge.LimitError
	if !errors.As(refusal, &limit) || !known || !r.remembers() || r.checkClock() != nil {
		return
	}
	r.saveLedger(ctx, memory, r.endedBy(refusal), func(have ledger.Ledger) ledger.Ledger {
		switch {
		case judge.Dropped(c, have.Figures, r.Policy.Limits) == nil:
			have.Doubt = ledger.Doubt{}
		case have.Doubt.At == 0 || judge.Dropped(c, have.Doubt.Figures, r.Policy.Limits) != nil:
			have.Doubt = ledger.Doubt{Figures: c.Figures(), At: ledger.ToSecond(now).Unix()}
		}
		return judge.WithHung(have, decisions)
	})
}

// refuse returns a *LimitError with all limits that refuse the plan. It warns of those that
// the run ignores.
func (r *run) refuse(plan judge.Plan, census census.Census, last ledger.Ledger, now time.Time) error {
	limits, grace := r.Policy.Limits, r.Policy.GracePeriod.Duration
	refusals := append(plan.Believe(limits, census, last, now, grace), plan.Check(limits, census)...)
	refusals = slices.DeleteFunc(refusals, func(refusal judge.Refusal) bool {
		ignored := slices.Contains(r.IgnoreLimits, refusal.Name())
		if ignored {
			r.warn("a limit is ignored: " + refusal.Message)
		}
		return ignored
	})
	if len(refusals) == 0 {
		return nil
	}
	r.report.Refuse(plan.Due, refusals)
	return &judge.LimitError{Refusals: refusals, Released: len(r.earlier)}
}

// ErrAnotherStore says that a store outside the API server is not that of earlier runs. It may be
// that of another cluster.
var ErrAnotherStore = errors.New("another store")

// refuseStores returns an *InputError if a store is not the one that the ledger has, unless the run
// accepts that. A store that had an identity and has none is another one.
func (r *run) refuseStores(plan judge.Plan, inv ipam.Inventory, known ledger.Ledger) error {
	others := otherStores(inv, known)
	if len(others) == 0 {
		return nil
	}
	text := strings.Join(others, "; ")
	if r.AcceptNewStore {
		r.warn("another store is accepted: " + text)
		return nil
	}
	end := "; nothing was released"
	if n := len(r.earlier); n > 0 {
		end = fmt.Sprintf("; %d were released before, and nothing since", n)
	}
	refusal := judge.Refusal{
		Limit: ErrAnotherStore.Error(), Message: ErrAnotherStore.Error() + ": " + text,
		Remedy: "check that it is the store of this cluster; if it has replaced the other one, give --accept-new-store once",
	}
	r.report.Refuse(plan.Due, []judge.Refusal{refusal})
	return ipam.BadInput(fmt.Errorf("%w: %s%s", ErrAnotherStore, text, end), refusal.Remedy)
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

// permitted asks once, before the first write, for the rights to release what is due. It
// returns the plan without the backends for which a right is missing. Otherwise each of
// their releases would fail separately.
func (r *run) permitted(ctx context.Context, plan judge.Plan) judge.Plan {
	if r.Access == nil || len(plan.Due) == 0 {
		return plan
	}
	var due []string
	for _, i := range plan.Due {
		if name := plan.Decisions[i].Allocation.Backend; !slices.Contains(due, name) {
			due = append(due, name)
		}
	}
	denied := r.Access(ctx, due)
	if denied.All != nil {
		r.failAndWarn(denied.All)
	}
	for _, name := range due {
		if err := denied.Backends[name]; err != nil && denied.All == nil {
			r.failAndWarn(err)
		}
	}
	allowed := make(map[int]bool, len(plan.Due))
	for _, i := range plan.Due {
		if err := denied.of(plan.Decisions[i].Allocation.Backend); err != nil {
			r.settle(i, report.Failed, err)
			continue
		}
		allowed[i] = true
	}
	r.dropGroups(plan, allowed)
	return plan.Only(allowed)
}

// checkClock returns an error if the clock is wrong: with a wrong clock, a grace period
// may end too early, and an allocation may look too old.
func (r *run) checkClock() error {
	if r.ClockSkew == nil {
		return nil
	}
	skew, known := r.ClockSkew()
	most := judge.ClockTolerance(r.Policy)
	if !known || skew.Abs() <= most {
		return nil
	}
	where := "ahead of"
	if skew < 0 {
		where = "behind"
	}
	return fmt.Errorf("the clock here is %v %s the API server's: nothing is released until they differ by at most %v", skew.Abs(), where, most)
}
