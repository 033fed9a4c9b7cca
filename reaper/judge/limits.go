package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A LimitError refuses a plan: the plan is over a limit, or its census is not believed.
// No part of the plan was released.
type LimitError struct {
	Refusals []Refusal // each limit that refuses it

	// Released is how many allocations earlier rounds of the same run released.
	Released int
}

// Error names every limit with its figures, and the number of releases so far.
func (e *LimitError) Error() string {
	var text strings.Builder
	for _, refusal := range e.Refusals {
		text.WriteString(refusal.Message + "; ")
	}
	if e.Released > 0 {
		fmt.Fprintf(&text, "%d were released before, and nothing since", e.Released)
	} else {
		text.WriteString("nothing was released")
	}
	return text.String()
}

// Check returns each limit that the plan is over.
//
// limits.maxFraction counts everything that is due, whatever the selection: if most allocations
// have no owner, the pods may be those of another cluster, and then no part of the plan is right.
// So a plan that is refused as a whole is refused in each part. For a store outside the API server,
// it also holds for that store by itself: it may be that of another cluster, whatever the others
// are.
//
// Check also refuses a plan whose census is empty. An API server that answers for another
// cluster, or from an empty store, looks like that, and so does the socket of another
// container runtime.
func (p Plan) Check(limits policy.Limits, c census.Census) []Refusal {
	if len(p.Due) == 0 {
		return nil
	}
	total := p.addresses("")
	var refusals []Refusal
	refuse := func(limit string, n addresses, releases int, of, allowed, advice string) {
		plan := "the plan would release"
		if releases > n.planned {
			plan = "without the selection, the plan would release"
		}
		message := fmt.Sprintf("%s %d of %d allocations%s", plan, releases, n.all, of)
		if allowed != "" {
			message += ", more than the allowed " + allowed
		}
		refusals = append(refusals, refusal(limit, message, advice))
	}
	const raise = "review the plan; if it is right, raise %s or"
	if c.IsEmpty() {
		words := c.Words()
		refuse(words.Empty, total, total.planned, "", "", "check that "+words.Source+" is "+words.Right+"; if it is,")
	}
	if most := *limits.MaxReleases; most > 0 && total.planned > most {
		refuse("limits.maxReleases", total, total.planned, "", fmt.Sprint(most), fmt.Sprintf(raise, "limits.maxReleases"))
	}
	checkFraction := func(n addresses, of string) bool {
		over := n.all >= *limits.MinEntries && float64(n.due) > *limits.MaxFraction*float64(n.all)
		if over {
			refuse("limits.maxFraction", n, n.due, of, percent(*limits.MaxFraction), fmt.Sprintf(raise, "limits.maxFraction"))
		}
		return over
	}
	if checkFraction(total, "") {
		return refusals
	}
	for _, backend := range p.outside {
		checkFraction(p.addresses(backend), " of "+backend)
	}
	return refusals
}

// fewNodes is how many nodes the last run must have found before a drop counts. Of two
// nodes, one may well be missing because it is being replaced.
const fewNodes = 3

// leastDoubt is the shortest time that a drop is doubted, under any policy.
const leastDoubt = 30 * time.Second

// Believe compares the census with that of the last run. If any allocation is ownerless,
// it returns a refusal for each list from which so much vanished that it may be
// incomplete. Finished pods do not count. It believes a drop that an earlier run saw too,
// at least a grace period ago, if no more vanished since.
func (p Plan) Believe(limits policy.Limits, c census.Census, last ledger.Ledger, now time.Time, grace time.Duration) []Refusal {
	if !slices.ContainsFunc(p.Decisions, func(d Decision) bool { return d.Ownerless }) {
		return nil
	}
	refusals := Dropped(c, last.Figures, limits)
	d := last.Doubt
	if len(refusals) == 0 || d.At == 0 {
		return refusals
	}
	over := time.Unix(d.At, 0).Add(max(grace, leastDoubt))
	if Dropped(c, d.Figures, limits) == nil && !now.Add(jitter(grace)).Before(over) {
		return nil
	}
	return refusals
}

// Dropped returns a refusal for each list of the census that is far below the figures.
func Dropped(c census.Census, then census.Figures, limits policy.Limits) []Refusal {
	now, words := c.Figures(), c.Words()
	var refusals []Refusal
	for _, list := range []struct {
		kind              string
		now, then, enough int
	}{
		{words.Counted, now.Pods, then.Pods, *limits.MinEntries},
		{"nodes", now.Nodes, then.Nodes, fewNodes},
	} {
		most := *limits.MaxPodDrop
		read := list.kind != "nodes" || c.ReadsNodes()
		if read && list.then >= list.enough && float64(list.then-list.now) > most*float64(list.then) {
			message := fmt.Sprintf("%s has %d %s, down from %d in the last run, a drop of more than the allowed %s",
				words.Subject, list.now, list.kind, list.then, percent(most))
			refusals = append(refusals, refusal("limits.maxPodDrop", message, "check that "+words.Source+" is the right one and lists everything; "+
				"if it does, run again after a grace period, raise limits.maxPodDrop or"))
		}
	}
	return refusals
}

// percent returns a fraction for people.
func percent(fraction float64) string { return fmt.Sprintf("%.4g %%", fraction*100) }

// A Refusal is one limit that the plan exceeds.
type Refusal struct {
	Limit   string `json:"limit"`   // the policy's field, or a description
	Message string `json:"message"` // the limit and the figures
	Remedy  string `json:"remedy"`  // what the operator does, in one sentence
}

// noPods names the limit of a plan whose census is empty. It is not a field of the policy.
const noPods = "noPods"

// LimitNames returns the names of the limits that an operator may lift.
func LimitNames() []string { return []string{"maxReleases", "maxFraction", "maxPodDrop", noPods} }

// Name returns the one of LimitNames that refuses.
func (r Refusal) Name() string {
	if field, ok := strings.CutPrefix(r.Limit, "limits."); ok {
		return field
	}
	return noPods
}

// refusal returns a Refusal. The advice says what to do before the limit is lifted.
func refusal(limit, message, advice string) Refusal {
	r := Refusal{Limit: limit, Message: limit + ": " + message}
	r.Remedy = advice + " give --unsafe-ignore-limit=" + r.Name()
	return r
}
