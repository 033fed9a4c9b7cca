package policy

import (
	"net/netip"
	"path"
	"slices"
	"strings"
)

// A Compiled policy answers what the policy says about allocations. Each of its patterns is parsed once. It
// is safe for concurrent use.
type Compiled struct {
	Policy
	include, exclude []glob
	all              []int        // the rules
	matches          [][]globList // of each rule: its lists that are not empty

	// The patterns of pools that match their own text only, and the others.
	poolNames map[string]bool
	poolGlobs []glob
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
	all     bool         // it matches every name
	cidr    netip.Prefix // not valid if it is none
}

// Compile parses the patterns of a policy, which must come from Load or Default. It takes no later change
// of the policy into account.
func (p Policy) Compile() *Compiled {
	c := &Compiled{
		Policy: p, include: globs(p.Namespaces.Include), exclude: globs(p.Namespaces.Exclude),
		matches: make([][]globList, len(p.Rules)), poolNames: make(map[string]bool),
	}
	for i, r := range p.Rules {
		c.all = append(c.all, i)
		for _, l := range r.Match.lists() {
			if len(l.patterns) == 0 {
				continue
			}
			all := globs(l.patterns)
			names := slices.DeleteFunc(slices.Clone(all), func(g glob) bool { return g.cidr.IsValid() })
			c.matches[i] = append(c.matches[i], globList{l.of, all, names})
			for _, g := range all {
				switch {
				case l.of != PoolNames:
				case g.literal:
					c.poolNames[g.text] = true
				default:
					c.poolGlobs = append(c.poolGlobs, g)
				}
			}
		}
	}
	return c
}

// named reports whether a pattern of pools matches one of the names.
func (c *Compiled) named(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return c.poolNames[name] }) ||
		slices.ContainsFunc(c.poolGlobs, func(g glob) bool { return g.matchesOne(names) })
}

// globs parses patterns.
func globs(patterns []string) []glob {
	all := make([]glob, len(patterns))
	for i, text := range patterns {
		all[i] = glob{text: text, literal: !strings.ContainsAny(text, wildcards), all: matchesAll(text)}
		if outer, err := netip.ParsePrefix(text); err == nil {
			all[i].cidr = outer.Masked()
		}
	}
	return all
}

// Answered returns the pool with the answers of all rules about it, so that these are worked out once for
// all its allocations.
func (c *Compiled) Answered(p Pool) Pool {
	p.answers, p.rules = make([]answer, len(c.matches)), nil
	for i, lists := range c.matches {
		for n := range lists {
			if l := &lists[n]; l.of == PoolNames {
				p.answers[i] = p.matches(l)
			}
		}
		if p.answers[i] != no {
			p.rules = append(p.rules, i)
		}
	}
	return p
}

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
		return p.matches(l)
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
func (p *Pool) matches(l *globList) answer {
	for i := range l.globs {
		g := &l.globs[i]
		if g.all || Around(g.cidr, p.Range) || g.matchesOne(p.Names) {
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
