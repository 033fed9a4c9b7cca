package policy

import (
	"fmt"
	"path"
	"strings"
)

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
		match := fmt.Sprintf("rules[%d].match.", i)
		add(match+"namespaces", NamespaceNames, r.Match.Namespaces)
		add(match+"pods", PodNames, r.Match.Pods)
		add(match+"backends", BackendNames, r.Match.Backends)
	}
	return all
}

// wildcards are the characters of a pattern that do not stand for themselves.
const wildcards = `*?[\`

// Exact reports whether the pattern matches its own text only.
func (t Pattern) Exact() bool { return !strings.ContainsAny(t.Text, wildcards) }

// Everything reports whether the pattern matches every name.
func (t Pattern) Everything() bool { return matchesAll(t.Text) }

// Matches reports whether the pattern matches a name.
func (t Pattern) Matches(name string) bool { return matchAny([]string{t.Text}, name) == yes }

// Lists reports whether a pattern of its list matches a name.
func (t Pattern) Lists(name string) bool { return matchAny(t.List, name) == yes }

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
				all = append(all, fmt.Sprintf("%s: rules[%d] comes first and matches all that it matches, so it matters at most for allocations that name no pod", at, j))
				break
			}
		}
	}
	return all
}

// includes reports whether m is sure to match every pod that other matches.
func (m Match) includes(other Match) bool {
	return includes(m.Namespaces, other.Namespaces) && includes(m.Pods, other.Pods) && includes(m.Backends, other.Backends)
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
