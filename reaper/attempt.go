package reaper

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// An attempt is all that a round did about one allocation.
type attempt struct {
	judge.Orphan // the zero Orphan if the allocation is none: then it is only mended
	decision     *judge.Decision
	index        int // of the decision

	// outcome is empty until it is decided. err says why, or what is left to do.
	outcome report.Outcome
	err     error

	stored json.RawMessage // the data that its record needs
	last   error           // why the last try decided nothing; nil if its release never began
	lost   error           // why a try may have released it without an answer; nil if none did

	owned bool // it has an owner by now
	spent bool // the limits count it as released
}

// attemptsOf returns the attempts of a plan, in the order of its decisions: what is due, which is
// not decided yet, and what is kept already: selected orphans that are not due, because they
// protect others that stay, and what an earlier run began to release.
func attemptsOf(plan judge.Plan) []*attempt {
	due := make(map[int]bool, len(plan.Due))
	for _, i := range plan.Due {
		due[i] = true
	}
	var attempts []*attempt
	for i := range plan.Decisions {
		a := &attempt{Orphan: plan.Orphan(i), decision: &plan.Decisions[i], index: i}
		orphaned := a.decision.Verdict == judge.Orphaned
		switch {
		case due[i]:
		case orphaned && plan.Selects(i):
			a.outcome, a.err = report.Kept, errUnselected
		case !orphaned && a.decision.Allocation.Interrupted:
			a.outcome = report.Kept
		default:
			continue
		}
		attempts = append(attempts, a)
	}
	return attempts
}

// errUnselected says that an object that protects others stays because one of them stays.
var errUnselected = errors.New("an allocation that it protects is not selected")

// allocation returns the allocation of the attempt.
func (a *attempt) allocation() *ipam.Allocation { return a.decision.Allocation }

// pool returns the name of the pool of the attempt.
func (a *attempt) pool() string { return a.allocation().Pool }

// settle decides the attempt.
func (a *attempt) settle(log *slog.Logger, outcome report.Outcome, err error) {
	a.outcome, a.err = outcome, err
	of := a.allocation()
	log.Debug("release", "backend", of.Backend, "pool", of.Pool, "key", of.Key, "ip", of.IP,
		"pod", of.Owner.Pod.String(), "reason", a.decision.Reason, "outcome", outcome, "err", err)
}

// undecided returns the attempts that are not decided.
func undecided(attempts []*attempt) []*attempt {
	var open []*attempt
	for _, a := range attempts {
		if a.outcome == "" {
			open = append(open, a)
		}
	}
	return open
}

// ofBackend returns the attempts on allocations of a backend.
func ofBackend(attempts []*attempt, backend string) []*attempt {
	var some []*attempt
	for _, a := range attempts {
		if a.allocation().Backend == backend {
			some = append(some, a)
		}
	}
	return some
}

// settleAll decides every attempt that is not decided yet.
func settleAll(log *slog.Logger, attempts []*attempt, outcome report.Outcome, err error) {
	for _, a := range undecided(attempts) {
		a.settle(log, outcome, err)
	}
}

// planAll notes that a run would release what is not decided yet, or that a limit refuses it.
func planAll(attempts []*attempt, outcome report.Outcome) {
	for _, a := range undecided(attempts) {
		a.outcome = outcome
	}
}

// settleSiblings keeps what is not decided of each group of which an attempt is decided. A group is
// released together or not at all.
func settleSiblings(log *slog.Logger, attempts []*attempt, why string) {
	broken := make(map[string]bool)
	for _, a := range attempts {
		if group := a.allocation().Group; a.outcome != "" && group != "" {
			broken[group] = true
		}
	}
	for _, a := range undecided(attempts) {
		if broken[a.allocation().Group] {
			a.settle(log, report.Kept, fmt.Errorf("%w: %s", ipam.ErrKept, why))
		}
	}
}

// find returns the attempt on a decision; nil if there is none.
func find(attempts []*attempt, index int) *attempt {
	i, found := slices.BinarySearchFunc(attempts, index, func(a *attempt, index int) int { return a.index - index })
	if !found {
		return nil
	}
	return attempts[i]
}

// released reports whether the store does not hold the allocation any more.
func (a *attempt) released() bool { return a.outcome == report.Released }

// done returns the attempt as the report has it.
func (a *attempt) done() report.Done {
	return report.Done{Outcome: a.outcome, Err: a.err, Owned: a.owned}
}

// cause returns why the attempt was decided as it was.
func (a *attempt) cause() error { return a.err }
