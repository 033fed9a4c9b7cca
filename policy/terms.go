package policy

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
)

// Terms are what a policy says about one allocation. The zero value keeps the
// allocation: it is not in scope.
type Terms struct {
	InScope bool          // the namespace is included and not excluded
	Hold    bool          // a rule holds it: it is never released
	Rule    int           // the index of the rule that decided; -1 if none did
	Grace   time.Duration // the grace period
	MinAge  time.Duration // the minimum age

	// ReleaseRestored is set if a rule ends the hold of what a restore put back.
	ReleaseRestored bool
}

// A Subject is an allocation as a Match asks about it. An empty name is unknown.
type Subject struct {
	Namespace, Pod, Backend string

	Nodes []string // each of which it may be on; none if that is unknown
	Pools []Pool   // each of which it may be in; none if that is unknown

	PoolNames []string // which each of its Pools has besides its own

	// Podless is set for an entry that is no pod's, such as an empty handle. No rule that has
	// namespaces or pods applies to it, and it is in scope. Placeless is set for one that has no
	// address: no rule that has pools or nodes applies to it.
	Podless, Placeless bool
}

// A Pool is a pool of addresses as a Match asks about it.
type Pool struct {
	Names []string     // its own, with and without its namespace, and those of its networks
	Range netip.Prefix // not valid if it has none

	// Attachments are the network attachments through which pods get an address of it. Any
	// tenant may add one, so the pool is theirs only if all match.
	Attachments []string
	MayBeOf     []string // attachments that may be others of it

	Unsure bool // it may have other names

	// By [Compiled.Answered]: what the pools of each rule answer, and the rules that may match an allocation
	// of this pool. Nil if they were not asked.
	answers []answer
	rules   []int
}

// Terms returns the terms of an allocation.
//
// An empty name is one that the store does not record. Only a pattern that matches every name is
// sure to match it. So an allocation with an empty name gets the most careful of the terms that it
// may fall under. It is out of scope if its namespace may be excluded. It is held if a rule that
// may match holds it. Otherwise it gets the longest times, and what a restore put back is held
// unless all of these rules end the hold. Its Rule is the first that holds it, or else the first
// that may match it. The same holds if its pool or its node is not known.
func (c *Compiled) Terms(s Subject) Terms {
	t := c.terms(s)
	t.InScope = s.Podless || matchAny(c.include, s.Namespace) == yes && matchAny(c.exclude, s.Namespace) == no
	return t
}

// terms returns what the rules and the policy say of an allocation, without its scope.
func (c *Compiled) terms(s Subject) Terms {
	p := &c.Policy
	t := Terms{Rule: -1}
	restored := true // by all rules that may match
	rules := c.all
	switch {
	case c.named(s.PoolNames):
	case len(s.Pools) == 1 && s.Pools[0].answers != nil:
		rules = s.Pools[0].rules
	default:
		s.PoolNames = nil
	}
	for _, i := range rules {
		covered := c.covers(i, &s)
		if covered == no {
			continue
		}
		r := &p.Rules[i]
		if t.Rule < 0 || r.Hold && !t.Hold {
			t.Rule = i
		}
		t.Hold = t.Hold || r.Hold
		t.Grace = max(t.Grace, first(r.GracePeriod, p.GracePeriod))
		t.MinAge = max(t.MinAge, first(r.MinAge, p.MinAge))
		restored = restored && r.Restored == Release
		if covered == yes {
			t.ReleaseRestored = restored
			return t
		}
	}
	t.Grace = max(t.Grace, first(p.GracePeriod))
	t.MinAge = max(t.MinAge, first(p.MinAge))
	return t
}

// Outside says which pattern excludes a namespace from the policy's scope, or that none includes
// it. It is empty if the namespace is in scope.
func (p Policy) Outside(namespace string) string {
	for _, pattern := range p.Namespaces.Exclude {
		if matchAny(globs([]string{pattern}), namespace) != no {
			return "namespaces.exclude has " + pattern
		}
	}
	if matchAny(globs(p.Namespaces.Include), namespace) == yes {
		return ""
	}
	return "namespaces.include has only: " + strings.Join(p.Namespaces.Include, ", ")
}

// String returns the patterns in words, such as "namespaces prod-*, pods db-*".
func (m Match) String() string {
	var parts []string
	for _, l := range m.lists() {
		if len(l.patterns) > 0 {
			parts = append(parts, l.name+" "+strings.Join(l.patterns, " or "))
		}
	}
	return strings.Join(parts, ", ")
}

// first returns the first duration that is set; 0 if none is.
func first(durations ...*Duration) time.Duration {
	for _, d := range durations {
		if d != nil {
			return d.Duration
		}
	}
	return 0
}

// An answer says whether a pattern matches a name. The zero value means that it is
// unknown. The lesser of two answers is their conjunction.
type answer int8

const (
	no answer = iota - 1
	maybe
	yes
)

// Within reports whether a range is inside a CIDR; false for any other text.
func Within(cidr string, inner netip.Prefix) bool {
	outer, err := netip.ParsePrefix(cidr)
	return err == nil && Around(outer, inner)
}

// Around reports whether a CIDR contains a range. One that is not valid contains none, and is in none.
func Around(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Masked().Contains(inner.Addr())
}

// A Pattern is one pattern of a policy.
type Pattern struct {
	At   string   // its field, such as rules[0].match.pods[1]
	Of   NameKind // what it is a pattern of
	Text string
	List []string // the patterns of its list
}

// A NameKind is a kind of names for which a policy has patterns.
type NameKind int

// The kinds of names.
const (
	NamespaceNames NameKind = iota
	PodNames
	BackendNames
	PoolNames // and those of networks and attachments, and ranges
	NodeNames
)

// Patterns returns the patterns of a policy: those of its namespaces, then those of its rules.
func (p Policy) Patterns() []Pattern {
	var all []Pattern
	add := func(at string, of NameKind, list []string) {
		for i, text := range list {
			all = append(all, Pattern{fmt.Sprintf("%s[%d]", at, i), of, text, list})
		}
	}
	add("namespaces.include", NamespaceNames, p.Namespaces.Include)
	add("namespaces.exclude", NamespaceNames, p.Namespaces.Exclude)
	for i, r := range p.Rules {
		for _, l := range r.Match.lists() {
			add(fmt.Sprintf("rules[%d].match.%s", i, l.name), l.of, l.patterns)
		}
	}
	return all
}

// wildcards are the characters of a pattern that do not stand for themselves.
const wildcards = `*?[\`

// Exact reports whether the pattern matches its own text only.
func (t Pattern) Exact() bool { return !strings.ContainsAny(t.Text, wildcards) }

// Everything reports whether the pattern matches every name.
func (t Pattern) Everything() bool { return matchesAll(t.Text) }

// Matches reports whether the pattern matches a name. A CIDR matches its own text only.
func (t Pattern) Matches(name string) bool {
	matched, _ := path.Match(t.Text, name)
	return matched
}

// Lists reports whether a pattern of its list matches a name.
func (t Pattern) Lists(name string) bool { return matchAny(globs(t.List), name) == yes }

// Warnings says what of a policy cannot be what its author meant, although it is valid. The Policy
// must come from Load or Default.
func (p Policy) Warnings() []string {
	var all []string
	for i, pattern := range p.Namespaces.Exclude {
		if matchesAll(pattern) {
			all = append(all, fmt.Sprintf("namespaces.exclude[%d]: %s excludes every namespace, so no pod's address is released", i, pattern))
		}
	}
	for i, r := range p.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		for _, idle := range []struct {
			name string
			set  bool
		}{{"gracePeriod", r.GracePeriod != nil}, {"minAge", r.MinAge != nil}, {"restored", r.Restored != ""}} {
			if r.Hold && idle.set {
				all = append(all, at+": hold is true, so nothing is released and "+idle.name+" does not matter")
			}
		}
		for j, earlier := range p.Rules[:i] {
			if earlier.Match.includes(r.Match) {
				all = append(all, fmt.Sprintf("%s: rules[%d] comes first and matches all that it matches, so it matters at most for allocations of which a name is unknown", at, j))
				break
			}
		}
	}
	return all
}

// includes reports whether m is sure to match every allocation that other matches, if all names are
// known. A CIDR matches other pools than a pattern for its text does.
func (m Match) includes(other Match) bool {
	inner := other.lists()
	for i, outer := range m.lists() {
		isCIDR := func(pattern string) bool { return outer.of == PoolNames && strings.Contains(pattern, "/") }
		if !slices.Equal(outer.patterns, inner[i].patterns) && slices.ContainsFunc(inner[i].patterns, isCIDR) ||
			!includes(outer.patterns, inner[i].patterns) {
			return false
		}
	}
	return true
}

// includes reports whether each name that one of the inner patterns matches is sure to match one
// of the outer ones. No patterns match every name.
func includes(outer, inner []string) bool {
	if len(inner) == 0 {
		inner = []string{"*"}
	}
	if len(outer) == 0 {
		return true
	}
	for _, in := range inner {
		covered := false
		for _, out := range outer {
			covered = covered || covers(out, in)
		}
		if !covered {
			return false
		}
	}
	return true
}

// covers reports whether the outer pattern is sure to match each name that the inner one matches.
// If the only wildcard of outer is *, it matches the text of inner only if each wildcard there
// falls to one of its own.
func covers(outer, inner string) bool {
	if outer == inner {
		return true
	}
	comparison := !strings.ContainsAny(inner, wildcards) || !strings.ContainsAny(outer, `?[\`) && !strings.ContainsAny(inner, `[\`)
	matched, err := path.Match(outer, inner)
	return comparison && matched && err == nil
}

// matchesAll reports whether a pattern matches every name.
func matchesAll(pattern string) bool { return pattern != "" && strings.Trim(pattern, "*") == "" }
