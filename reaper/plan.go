package reaper

import (
	"fmt"

	"github.com/ip-reaper/ip-reaper/policy"
)

// A Plan is what a run is about to release.
type Plan struct {
	verdicts []Verdict
	due      []int // indices of the orphans among the verdicts
}

// MakePlan collects the orphans among the verdicts.
func MakePlan(verdicts []Verdict) Plan {
	p := Plan{verdicts: verdicts}
	for i, v := range verdicts {
		if v.Standing == Orphaned {
			p.due = append(p.due, i)
		}
	}
	return p
}

// Orphans returns what the plan releases, in the order of the verdicts.
func (p Plan) Orphans() []Orphan {
	orphans := make([]Orphan, len(p.due))
	for i, index := range p.due {
		orphans[i] = p.verdicts[index].orphan
	}
	return orphans
}

// addresses returns how many addresses the plan releases, of how many. What
// holds none endangers nobody, and may be more than all addresses together.
func (p Plan) addresses() (planned, all int) {
	for _, v := range p.verdicts {
		if v.Reservation.Remnant {
			continue
		}
		all++
		if v.Standing == Orphaned {
			planned++
		}
	}
	return planned, all
}

// A LimitError is a plan that is too large to be believed. Nothing of it was
// carried out.
type LimitError struct {
	Limit        string // the policy's field, or what else refused
	Planned      int
	Reservations int
	Allowed      string
}

// Error says what was refused, with the figures.
func (e *LimitError) Error() string { return e.excess() + "; nothing was released" }

// excess gives the figures.
func (e *LimitError) excess() string {
	return fmt.Sprintf("%s: the plan releases %d of %d reservations, allowed is %s",
		e.Limit, e.Planned, e.Reservations, e.Allowed)
}

// Check compares the plan with the limits and the census it rests on. It
// returns a *LimitError, or nil.
//
// A census without a single pod beside reservations that name pods is refused
// too: an API server that answers for another cluster, or from an empty store,
// looks like that.
func (p Plan) Check(limits policy.Limits, c Census) error {
	planned, all := p.addresses()
	refuse := func(limit, allowed string) error {
		return &LimitError{Limit: limit, Planned: planned, Reservations: all, Allowed: allowed}
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
