package report

import (
	"fmt"
	"iter"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A Comparison says how the verdicts and reasons of a dry run by a policy file differ from those by the
// installed policy, in the same round.
type Comparison struct {
	// Missing says why there is nothing to compare with; empty if there is.
	Missing      string `json:"missing,omitempty"`
	NotInstalled bool   `json:"-"` // there is no installed policy

	// Refused has every limit of the installed policy that its plan is over.
	Refused []judge.Refusal `json:"refused,omitempty"`

	// Due and Held are how many addresses more are due, and held without an owner, by the file than by
	// the installed policy; negative if they are fewer.
	Due  int `json:"due"`
	Held int `json:"held"`

	Changes []Change `json:"changes"` // in the order of the stores
}

// A Change is an allocation of which the two policies give different verdicts or reasons.
type Change struct {
	Backend   string          `json:"backend"`
	Pool      string          `json:"pool"`
	Key       string          `json:"key"`
	Address   string          `json:"address"` // or its key, if it has none
	Owner     ipam.EntryOwner `json:"owner"`
	Installed Judged          `json:"installed"`
	File      Judged          `json:"file"`
}

// Judged is a verdict and its reason.
type Judged struct {
	Verdict judge.Verdict `json:"verdict"`
	Reason  judge.Reason  `json:"reason"`
	Leaked  bool          `json:"-"`
}

// Compare returns how the verdicts of two policies on the same inventory differ. An address counts
// once. Only decisions that are selected count; with nil, all that there is.
func Compare(installed, file judge.Verdicts, selected []bool) *Comparison {
	c := &Comparison{Changes: []Change{}}
	type difference struct {
		address       ipam.Address
		before, after Judged
	}
	var differences []difference
	next, stop := iter.Pull2(installed.Each)
	defer stop()
	for i, d := range file.Each {
		_, by, _ := next()
		before, after := judged(by), judged(d)
		if selected != nil && !selected[i] || before == after {
			continue
		}
		a := d.Allocation
		c.Changes = append(c.Changes, Change{a.Backend, a.Pool, a.Key, a.Label(), a.Owner.Entry(), before, after})
		if before.Verdict != after.Verdict || before.Leaked != after.Leaked {
			differences = append(differences, difference{a.Address(), before, after})
		}
	}
	for address := range ipam.Addresses(differences, func(d difference) ipam.Address { return d.address }) {
		c.count(address[0].before, -1)
		c.count(address[0].after, 1)
	}
	return c
}

// judged returns the verdict of a decision.
func judged(d *judge.Decision) Judged { return Judged{d.Verdict, d.Reason, d.Leaks()} }

// count counts an address with a verdict, n times.
func (c *Comparison) count(j Judged, n int) {
	switch {
	case j.Verdict == judge.Orphaned:
		c.Due += n
	case j.Verdict == judge.Held && j.Leaked:
		c.Held += n
	}
}

// String says it in one sentence.
func (c *Comparison) String() string {
	if c.Missing != "" {
		return "not compared with the installed policy: " + c.Missing
	}
	var parts []string
	tell := func(n int, would string) {
		if n > 0 {
			parts = append(parts, printable.Thousands(n)+" more "+would)
		} else if n < 0 {
			parts = append(parts, printable.Thousands(-n)+" fewer "+would)
		}
	}
	tell(c.Due, "due")
	tell(c.Held, "held")
	if len(parts) == 0 {
		parts = []string{"as many due and held"}
		if len(c.Changes) == 0 {
			parts = []string{"no verdict or reason differs"}
		}
	}
	for _, refusal := range c.Refused {
		parts = append(parts, fmt.Sprintf("and the plan of the installed one would be refused (%s)", refusal.Limit))
	}
	return "compared with the installed policy: " + strings.Join(parts, ", ")
}
