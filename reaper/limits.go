package reaper

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
)

// A LimitError is a plan that is too large to be believed. Nothing of it was
// carried out.
type LimitError struct {
	Limit       string // the policy's field, or what else refused
	Planned     int    // with what earlier looks of the run released
	Allocations int
	Allowed     string

	// Released is how many entries earlier looks of the run released, which
	// waited.
	Released int

	// Census says in words what is not believed of who is alive; empty where it
	// is the plan that is too large.
	Census string
}

// Error says what was refused, with the figures.
func (e *LimitError) Error() string {
	if e.Released > 0 {
		return e.excess() + fmt.Sprintf("; %d were released before, and nothing since", e.Released)
	}
	return e.excess() + "; nothing was released"
}

// excess gives the figures.
func (e *LimitError) excess() string {
	if e.Census != "" {
		return e.Limit + ": " + e.Census
	}
	return fmt.Sprintf("%s: the plan releases %d of %d allocations, allowed is %s",
		e.Limit, e.Planned, e.Allocations, e.Allowed)
}

// Check compares the plan with the limits and the census it rests on. It
// returns a *LimitError, or nil.
//
// A census without a single pod beside allocations that name pods is refused
// too: an API server that answers for another cluster, or from an empty store,
// looks like that.
func (p Plan) Check(limits policy.Limits, c Census) error {
	planned, all := p.addresses()
	refuse := func(limit, allowed string) error {
		return &LimitError{Limit: limit, Planned: planned, Allocations: all, Allowed: allowed}
	}
	if len(p.due) == 0 {
		return nil
	}
	if c.Size() == 0 {
		return refuse("a cluster without a single pod", "none")
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

// fewNodes is how many nodes there must have been for a drop to say anything: of
// two, one may well have been replaced.
const fewNodes = 3

// Believe compares the census with what the last run found. It returns a
// *LimitError where so many pods or nodes are gone that the lists may not be whole,
// and something has lost its owner; or nil.
func (p Plan) Believe(limits policy.Limits, c Census, last Ledger) error {
	ownerless := slices.ContainsFunc(p.decisions, func(v Decision) bool { return v.ownerless })
	now, then := c.figures(), last.figures
	for _, list := range []struct {
		what              string
		now, then, enough int
	}{
		{"pods", now.Pods, then.Pods, *limits.MinEntries},
		{"nodes", now.Nodes, then.Nodes, fewNodes},
	} {
		most := *limits.MaxPodDrop
		asked := list.what == "pods" || c.nodes != nil
		if ownerless && asked && list.then >= list.enough && float64(list.then-list.now) > most*float64(list.then) {
			return &LimitError{Limit: "limits.maxPodDrop", Census: fmt.Sprintf(
				"%d %s were found, and %d in the last run; believed is a drop by a fraction of %g",
				list.now, list.what, list.then, most)}
		}
	}
	return nil
}

// refuse returns a *LimitError where the census is not to be believed, or the plan
// too large, unless limits are ignored.
func (r *run) refuse(plan Plan, census Census, last Ledger) error {
	for _, err := range []error{plan.Believe(r.Policy.Limits, census, last), plan.Check(r.Policy.Limits, census)} {
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
