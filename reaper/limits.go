package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// A LimitError refuses a plan: the plan is over a limit, or its census is not believed.
// Nothing of the plan was released.
type LimitError struct {
	Limit       string // the policy's field, or a description if there is no field
	Planned     int    // addresses, with those that earlier looks of the run released
	Allocations int
	Allowed     string

	// Released is how many allocations earlier looks of the same run released.
	Released int

	// Census says why the census is not believed; empty if the plan is over a limit.
	Census string
}

// Error names the limit, the figures, and the number of releases so far.
func (e *LimitError) Error() string {
	if e.Released > 0 {
		return e.excess() + fmt.Sprintf("; %d were released before, and nothing since", e.Released)
	}
	return e.excess() + "; nothing was released"
}

// excess names the limit and the figures.
func (e *LimitError) excess() string {
	if e.Census != "" {
		return e.Limit + ": " + e.Census
	}
	return fmt.Sprintf("%s: the plan releases %d of %d allocations, allowed is %s",
		e.Limit, e.Planned, e.Allocations, e.Allowed)
}

// Check returns a *LimitError if the plan is over a limit, or nil.
//
// It also refuses a plan whose census has no pods. An API server that answers for
// another cluster, or from an empty store, looks like that.
func (p Plan) Check(limits policy.Limits, c Census) error {
	planned, all := p.addresses()
	refuse := func(limit, allowed string) error {
		return &LimitError{Limit: limit, Planned: planned, Allocations: all, Allowed: allowed}
	}
	if len(p.due) == 0 {
		return nil
	}
	if c.Size() == 0 {
		return refuse("the cluster has no pods", "none")
	}
	if most := *limits.MaxReleases; most > 0 && planned > most {
		return refuse("limits.maxReleases", fmt.Sprint(most))
	}
	fraction := *limits.MaxFraction
	if all >= *limits.MinEntries && float64(planned) > fraction*float64(all) {
		return refuse("limits.maxFraction", fmt.Sprintf("a fraction of %g", fraction))
	}
	return nil
}

// fewNodes is how many nodes the last run must have found before a drop counts. Of two
// nodes, one may well be missing because it is being replaced.
const fewNodes = 3

// leastDoubt is how long a drop is doubted, for any policy.
const leastDoubt = 30 * time.Second

// Believe compares the census with that of the last run. It returns a *LimitError if
// so many pods or nodes vanished that the lists may be incomplete, and any allocation
// is ownerless; or nil. Finished pods do not count. It believes a drop that an earlier run
// saw too, at least a grace period ago, if no more of them vanished since.
func (p Plan) Believe(limits policy.Limits, c Census, last Ledger, now time.Time, grace time.Duration) error {
	if !slices.ContainsFunc(p.decisions, func(d Decision) bool { return d.ownerless }) {
		return nil
	}
	err := c.dropped(last.figures, limits)
	d := last.doubt
	if err == nil || d.At == 0 {
		return err
	}
	over := time.Unix(d.At, 0).Add(max(grace, leastDoubt))
	if c.dropped(d.figures, limits) == nil && !now.Add(jitter(grace)).Before(over) {
		return nil
	}
	return err
}

// dropped returns a *LimitError if the census has much less than the figures; or nil.
func (c Census) dropped(then figures, limits policy.Limits) error {
	now := c.figures()
	for _, list := range []struct {
		kind              string
		now, then, enough int
	}{
		{"unfinished pods", now.Pods, then.Pods, *limits.MinEntries},
		{"nodes", now.Nodes, then.Nodes, fewNodes},
	} {
		most := *limits.MaxPodDrop
		read := list.kind != "nodes" || c.nodes != nil
		if read && list.then >= list.enough && float64(list.then-list.now) > most*float64(list.then) {
			return &LimitError{Limit: "limits.maxPodDrop", Census: fmt.Sprintf(
				"the cluster has %d %s, in the last run it had %d; allowed is a drop by a fraction of %g",
				list.now, list.kind, list.then, most)}
		}
	}
	return nil
}

// doubt remembers a census that is not believed, and since when the figures have been
// that low. If the census is believed and only the plan is over a limit, there is no
// doubt any more. Nothing else of such a run is remembered.
func (r *run) doubt(ctx context.Context, refusal error, ledger Ledger, known bool, c Census, now time.Time) {
	var limit *LimitError
	if !errors.As(refusal, &limit) || !known || !r.remembers() || r.checkClock() != nil {
		return
	}
	r.saveLedger(ctx, ledger, func(have Ledger) Ledger {
		have = have.clone()
		switch {
		case c.dropped(have.figures, r.Policy.Limits) == nil:
			have.doubt = doubt{}
		case have.doubt.At == 0 || c.dropped(have.doubt.figures, r.Policy.Limits) != nil:
			have.doubt = doubt{c.figures(), toSecond(now).Unix()}
		}
		return have
	})
}

// refuse returns a *LimitError if the census is not believed or the plan is over a
// limit. If the run ignores limits, it warns instead.
func (r *run) refuse(plan Plan, census Census, last Ledger, now time.Time) error {
	for _, err := range []error{
		plan.Believe(r.Policy.Limits, census, last, now, r.Policy.GracePeriod.Duration), plan.Check(r.Policy.Limits, census),
	} {
		var limit *LimitError
		switch {
		case !errors.As(err, &limit):
		case !r.IgnoreLimits:
			limit.Released = len(r.earlier)
			return err
		default:
			r.warn("limits are ignored: " + limit.excess())
		}
	}
	return nil
}
