package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A LimitError refuses a plan: the plan is over a limit, or its census is not believed.
// Nothing of the plan was released.
type LimitError struct {
	Limit       string // the policy's field, or a description if there is no field
	Planned     int    // addresses, with those that earlier rounds of the run released
	Allocations int
	Allowed     string

	// Released is how many allocations earlier rounds of the same run released.
	Released int

	// Census says why the census is not believed; empty if the plan is over a limit.
	Census string

	// Others are the other limits that refuse the same plan.
	Others []*LimitError

	Source string // of the census that is not believed, for people
}

// Error names every limit with its figures, and the number of releases so far.
func (e *LimitError) Error() string {
	text := e.Excess()
	for _, other := range e.Others {
		text += "; " + other.Excess()
	}
	if e.Released > 0 {
		return text + fmt.Sprintf("; %d were released before, and nothing since", e.Released)
	}
	return text + "; nothing was released"
}

// Refusals returns one Refusal for each limit that refuses the plan.
func (e *LimitError) Refusals() []Refusal {
	refusals := []Refusal{e.refusal()}
	for _, other := range e.Others {
		refusals = append(refusals, other.refusal())
	}
	return refusals
}

// refusal returns the limit alone, without the others.
func (e *LimitError) refusal() Refusal {
	remedy := "look at the plan; if it is right, raise " + e.Limit + " or give --unsafe-ignore-limits"
	switch {
	case e.Census != "":
		remedy = "look whether " + e.Source + " is the right one and lists everything; if it does, " +
			"run again after a grace period, raise " + e.Limit + " or give --unsafe-ignore-limits"
	case e.Limit == census.NoPods:
		remedy = "look whether the API server is the right one; if it is, give --unsafe-ignore-limits"
	case e.Limit == census.NoSandboxes:
		remedy = "look whether the container runtime is that of the kubelet; if it is, give --unsafe-ignore-limits"
	}
	return Refusal{Limit: e.Limit, Message: e.Excess(), Remedy: remedy}
}

// Joined returns the first of the refusals, which has the others; nil if there is none.
func Joined(refusals []*LimitError) *LimitError {
	if len(refusals) == 0 {
		return nil
	}
	if len(refusals) > 1 {
		refusals[0].Others = refusals[1:]
	}
	return refusals[0]
}

// Excess names the limit and the figures.
func (e *LimitError) Excess() string {
	if e.Census != "" {
		return e.Limit + ": " + e.Census
	}
	return fmt.Sprintf("%s: the plan releases %d of %d allocations, allowed is %s",
		e.Limit, e.Planned, e.Allocations, e.Allowed)
}

// Check returns a *LimitError for each limit that the plan is over.
//
// It also refuses a plan whose census is empty. An API server that answers for another
// cluster, or from an empty store, looks like that, and so does the socket of another
// container runtime.
func (p Plan) Check(limits policy.Limits, c census.Census) []*LimitError {
	if len(p.Due) == 0 {
		return nil
	}
	planned, all := p.addresses()
	var refusals []*LimitError
	refuse := func(limit, allowed string) {
		refusals = append(refusals, &LimitError{Limit: limit, Planned: planned, Allocations: all, Allowed: allowed})
	}
	if c.IsEmpty() {
		refuse(c.Words().Empty, "none")
	}
	if most := *limits.MaxReleases; most > 0 && planned > most {
		refuse("limits.maxReleases", fmt.Sprint(most))
	}
	if p.exceeds(limits) && (all >= *limits.MinEntries || p.wholeExceeds(limits)) {
		refuse("limits.maxFraction", fmt.Sprintf("a fraction of %g", *limits.MaxFraction))
	}
	return refusals
}

// exceeds reports whether the plan is over limits.maxFraction, however small it is.
func (p Plan) exceeds(limits policy.Limits) bool {
	planned, all := p.addresses()
	return float64(planned) > *limits.MaxFraction*float64(all)
}

// wholeExceeds reports whether the plan would be refused by limits.maxFraction without its
// selection. Few allocations say nothing of the census, and a selection of few must not
// hide that most of all have no owner: then the pods may be those of another cluster.
func (p Plan) wholeExceeds(limits policy.Limits) bool {
	whole := p
	whole.selected = nil
	_, all := whole.addresses()
	return p.selected != nil && all >= *limits.MinEntries && whole.exceeds(limits)
}

// fewNodes is how many nodes the last run must have found before a drop counts. Of two
// nodes, one may well be missing because it is being replaced.
const fewNodes = 3

// leastDoubt is how long a drop is doubted, for any policy.
const leastDoubt = 30 * time.Second

// Believe compares the census with that of the last run. It returns a *LimitError for
// each list of which so much vanished that it may be incomplete, if any allocation is
// ownerless. Finished pods do not count. It believes a drop that an earlier run saw too,
// at least a grace period ago, if no more of them vanished since.
func (p Plan) Believe(limits policy.Limits, c census.Census, last ledger.Ledger, now time.Time, grace time.Duration) []*LimitError {
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

// Dropped returns a *LimitError for each list of the census that has much less than the figures.
func Dropped(c census.Census, then census.Figures, limits policy.Limits) []*LimitError {
	now, words := c.Figures(), c.Words()
	var refusals []*LimitError
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
			refusals = append(refusals, &LimitError{Limit: "limits.maxPodDrop", Source: words.Source, Census: fmt.Sprintf(
				"%s has %d %s, in the last run it had %d; allowed is a drop by a fraction of %g",
				words.Subject, list.now, list.kind, list.then, most)})
		}
	}
	return refusals
}
