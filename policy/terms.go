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

	answers []answer // of the pools of each rule, by [Compiled.Answered]; nil if they were not asked
}

// A Compiled policy answers what the policy says about allocations. Each of its patterns is parsed once. It
// is safe for concurrent use.
type Compiled struct {
	Policy
	include, exclude []glob
	matches          [][]globList // of each rule: its lists that are not empty
}

// A globList is one list of a Match.
type globList struct {
	of    NameKind
	globs []glob
	names []glob // those that are no CIDR
}

// A glob is a parsed pattern.
type glob struct {
	text    string
	literal bool         // it matches its own text only
	cidr    netip.Prefix // not valid if it is none
}

// Compile parses the patterns of a policy, which must come from Load or Default. It takes no later change
// of the policy into account.
func (p Policy) Compile() *Compiled {
	c := &Compiled{Policy: p, include: globs(p.Namespaces.Include), exclude: globs(p.Namespaces.Exclude), matches: make([][]globList, len(p.Rules))}
	for i, r := range p.Rules {
		for _, l := range r.Match.lists() {
			if len(l.patterns) == 0 {
				continue
			}
			all := globs(l.patterns)
			names := slices.DeleteFunc(slices.Clone(all), func(g glob) bool { return g.cidr.IsValid() })
			c.matches[i] = append(c.matches[i], globList{l.of, all, names})
		}
	}
	return c
}

// globs parses patterns.
func globs(patterns []string) []glob {
	all := make([]glob, len(patterns))
	for i, text := range patterns {
		all[i] = glob{text: text, literal: !strings.ContainsAny(text, wildcards)}
		if outer, err := netip.ParsePrefix(text); err == nil {
			all[i].cidr = outer.Masked()
		}
	}
	return all
}

// Answered returns the pool with the answers of all rules about it, so that these are worked out once for
// all its allocations.
func (c *Compiled) Answered(p Pool) Pool {
	p.answers = make([]answer, len(c.matches))
	for i, lists := range c.matches {
		for _, l := range lists {
			if l.of == PoolNames {
				p.answers[i] = p.matches(l)
			}
		}
	}
	return p
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
	for i := range p.Rules {
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

// covers says whether a rule matches the subject.
func (c *Compiled) covers(rule int, s *Subject) answer {
	m := &c.Rules[rule].Match
	if s.Podless && len(m.Namespaces)+len(m.Pods) > 0 || s.Placeless && len(m.Pools)+len(m.Nodes) > 0 {
		return no
	}
	covered := yes
	for i := range c.matches[rule] {
		covered = min(covered, s.matches(rule, &c.matches[rule][i]))
	}
	return covered
}

// matches says whether the subject matches a list of a rule.
func (s *Subject) matches(rule int, l *globList) answer {
	switch l.of {
	case NamespaceNames:
		return matchAny(l.globs, s.Namespace)
	case PodNames:
		return matchAny(l.globs, s.Pod)
	case BackendNames:
		return matchAny(l.globs, s.Backend)
	case PoolNames:
		return s.inPools(rule, l)
	default:
		if len(s.Nodes) == 0 {
			return matchAny(l.globs, "")
		}
		return agreed(s.Nodes, func(node *string) answer { return matchAny(l.globs, *node) })
	}
}

// inPools says whether the subject is in one of the pools of a rule.
func (s *Subject) inPools(rule int, l *globList) answer {
	if len(s.Pools) == 0 {
		return matchAny(l.globs, "")
	}
	for i := range l.globs {
		if l.globs[i].matchesOne(s.PoolNames) {
			return yes
		}
	}
	return agreed(s.Pools, func(p *Pool) answer {
		if p.answers != nil {
			return p.answers[rule]
		}
		return p.matches(*l)
	})
}

// agreed returns the answer that is the same for all; otherwise it is unknown.
func agreed[T any](all []T, ask func(*T) answer) answer {
	found := ask(&all[0])
	for i := range all[1:] {
		if ask(&all[1+i]) != found {
			return maybe
		}
	}
	return found
}

// matches says whether the pool matches one of the patterns. A CIDR is about the range alone.
func (p *Pool) matches(l globList) answer {
	for i := range l.globs {
		g := &l.globs[i]
		inRange := p.Range.IsValid() && g.cidr.IsValid() && g.cidr.Bits() <= p.Range.Bits() && g.cidr.Contains(p.Range.Addr())
		if inRange || matchesAll(g.text) || g.matchesOne(p.Names) {
			return yes
		}
	}
	names := l.globs
	if p.Range.IsValid() {
		names = l.names
	}
	switch {
	case len(names) == 0:
		return no
	case p.Unsure:
		return maybe
	case len(p.Attachments)+len(p.MayBeOf) == 0:
		return no
	}
	found := agreed(slices.Concat(p.Attachments, p.MayBeOf), func(name *string) answer { return matchAny(names, *name) })
	if found == yes && len(p.Attachments) == 0 {
		return maybe
	}
	return found
}

// Within reports whether a range is inside a CIDR; false for any other text.
func Within(cidr string, inner netip.Prefix) bool {
	outer, err := netip.ParsePrefix(cidr)
	return err == nil && outer.Bits() <= inner.Bits() && outer.Masked().Contains(inner.Addr())
}

// matchAny says whether one of the patterns matches the name. A pattern may match
// an empty name, which stands for an unknown one. A pattern that cannot be parsed
// may match any name.
func matchAny(patterns []glob, name string) answer {
	matched := no
	for i := range patterns {
		ok, err := patterns[i].matches(name)
		switch {
		case ok:
			return yes
		case err != nil || name == "":
			matched = maybe
		}
	}
	return matched
}

// matches reports whether the pattern matches a name. It fails if the pattern cannot be parsed.
func (g *glob) matches(name string) (bool, error) {
	if g.literal {
		return g.text == name, nil
	}
	return path.Match(g.text, name)
}

// matchesOne reports whether the pattern matches one of the names.
func (g *glob) matchesOne(names []string) bool {
	for _, name := range names {
		if ok, _ := g.matches(name); ok {
			return true
		}
	}
	return false
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

// Matches reports whether the pattern matches a name, or is a CIDR around a range of that text.
func (t Pattern) Matches(name string) bool {
	prefix, err := netip.ParsePrefix(name)
	return matchAny(globs([]string{t.Text}), name) == yes || t.Of == PoolNames && err == nil && Within(t.Text, prefix)
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
