package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
)

const (
	isNull    = "Required value: must not be null; leave the field out for its default"
	isEmpty   = "Required value: must not be empty"
	noMatch   = "Required value: must have namespaces, pods, backends, pools or nodes; set the terms of all allocations outside the rules"
	noString  = "must be a string, in quotes if YAML takes it for something else"
	noPattern = `must be a lower-case name, in which * ? [a-z] [^a-z] and \ have their meaning as in a shell`
	noTime    = `must be a duration in units from h to ns, such as "15m" or "1h30m", and below 100000h`
	backends  = `supported values: "calico", "overlapping", "whereabouts"`
)

func noTabs(line int) string {
	return fmt.Sprintf("line %d: YAML forbids tabs for indentation, use spaces", line)
}

// The mistakes that TestMistakesOfForm and TestMistakenValuesAreReportedTogether do not have.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct{ name, yaml, want string }{
		{"Go name of an embedded field", "gracePeriod: {Duration: 5}",
			"gracePeriod: Invalid value: " + noTime + `, not {"Duration":5}`},
		{"unknown field like no other", "pods: {restarted: hold}", "pods.restarted: Forbidden: unknown field"},
		{"unknown field that is no word", `"a\nb": 1`,
			"a\nb: Forbidden: unknown field"},

		{"tab", "limits:\n\tmaxFraction: 0.5", noTabs(4)},
		{"tab after spaces", "limits:\n  maxFraction: 0.5\n  \tminEntries: 3", noTabs(5)},
		{"tab in a list", "rules:\n-\thold: true", noTabs(4)},
		{"another character that begins nothing", "minAge: @\t1m", "yaml: line 3: found character that cannot start any token"},

		{"mapping wanted", "limits: 3", "limits: Invalid value: must be a mapping, not number"},
		{"list wanted", "rules: {hold: true}", "rules: Invalid value: must be a list, not object"},
		{"string wanted", "namespaces: {exclude: [no]}",
			"namespaces.exclude[0]: Invalid value: " + noString + ", not bool"},
		{"number wanted", "limits: {maxFraction: 50%}",
			"limits.maxFraction: Invalid value: must be a number, not string"},
		{"boolean wanted", "rules: [{match: {pods: [a]}, hold: maybe}]",
			"rules[0].hold: Invalid value: must be true or false, not string"},

		{"null backend", "backends: {calico: }", "backends.calico: " + isNull},

		{"duration in days", "gracePeriod: 1d", "gracePeriod: Invalid value: " + noTime + `, not "1d"`},
		{"duration too long", "gracePeriod: 9999999h", "gracePeriod: Invalid value: " + noTime + `, not "9999999h"`},
		{"empty duration", "gracePeriod: ''", "gracePeriod: " + isEmpty},

		{"nothing included", "namespaces: {include: []}",
			"namespaces.include: Required value: must have a pattern; leave the field out for all namespaces"},
		{"empty pattern", "namespaces: {exclude: ['']}", "namespaces.exclude[0]: " + isEmpty},
		{"a prefix that is too long", "rules: [{match: {pools: [10.0.0.0/33]}}]",
			`rules[0].match.pools[0]: Invalid value: "10.0.0.0/33": must be a name, a glob pattern or a CIDR such as 10.0.0.0/16`},
		{"a pool's pattern is no glob", "rules: [{match: {pools: ['a[']}}]", `rules[0].match.pools[0]: Invalid value: "a[": must be a glob pattern: syntax error in pattern`},
		{"a node in capitals", "rules: [{match: {nodes: [A]}}]", `rules[0].match.nodes[0]: Invalid value: "A": ` + noPattern},
		{"negation of a shell", "rules: [{match: {namespaces: ['[!a]']}}]",
			`rules[0].match.namespaces[0]: Invalid value: "[!a]": ` + noPattern},

		{"switch in quotes", `backends: {calico: {enabled: "true"}}`,
			`backends.calico.enabled: Invalid value: must be auto, true or false, the last two without quotes, not "true"`},

		{"negative releases", "limits: {maxReleases: -1}",
			"limits.maxReleases: Invalid value: -1: must not be negative; 0 means no limit"},
		{"no fraction", "limits: {maxFraction: 0}",
			"limits.maxFraction: Invalid value: 0: must be above 0 and at most 1"},
		{"journal too long", "journal: {keep: 101}", "journal.keep: Invalid value: 101: must be from 1 to 100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := policy.Load([]byte(header+tt.yaml), known)
			wantRefusal(t, p, err, tt.want)
		})
	}
}

// All mistakes of names and types are reported, whatever they are.
func TestMistakesOfForm(t *testing.T) {
	p, err := policy.Load([]byte(header+`
node: {}
dryRun:
limits: {maxfraction: 2, maxReleases: many, minEntries: 1.5}
rules:
- {match: {pod: [a], backends: [etcd]}, grace: 1d}
- {match: {pods: ['']}, hold: maybe, minAge: 1d}
- 7
backends:
  calico: {enabled: 1, Mode: none, login: 3, places: [{name: 1}, {size: 2}]}
  whereabouts: {enable: true}
  etcd: {}
  overlapping: off
`), known)
	wantRefusal(t, p, err,
		"backends.calico.Mode: Forbidden: unknown field; did you mean mode?",
		"backends.calico.enabled: Invalid value: must be auto, true or false, the last two without quotes, not 1",
		"backends.calico.login: Invalid value: must be a mapping, not number",
		"backends.calico.places[0].name: Invalid value: "+noString+", not number",
		"backends.calico.places[1].size: Forbidden: unknown field",
		`backends.etcd: Unsupported value: "etcd": `+backends,
		"backends.overlapping: Invalid value: must be a mapping, not bool",
		"backends.whereabouts.enable: Forbidden: unknown field; did you mean enabled?",
		"dryRun: "+isNull,
		"limits.maxReleases: Invalid value: must be a whole number, not string",
		"limits.maxfraction: Forbidden: unknown field; did you mean maxFraction?",
		"limits.minEntries: Invalid value: must be a whole number, not number 1.5",
		"node: Forbidden: unknown field; did you mean nodes?",
		"rules[0].grace: Forbidden: unknown field; did you mean gracePeriod?",
		"rules[0].match.pod: Forbidden: unknown field; did you mean pods?",
		"rules[1].hold: Invalid value: must be true or false, not string",
		"rules[1].match.pods[0]: "+isEmpty,
		"rules[1].minAge: Invalid value: "+noTime+`, not "1d"`,
		"rules[2]: Invalid value: must be a mapping, not number",
	)
	p, err = policy.Load([]byte(header+"minAge: 1m\nminAge: 2m\ndryRun: maybe\ndryRun: false\nlimits:\n"), known)
	wantRefusal(t, p, err, `line 4: key "minAge" already set in map`, `line 6: key "dryRun" already set in map`)
	p, err = policy.Load([]byte(header+"limits:\nbackends: {calico: {mode: '', size: }}\n"), known)
	wantRefusal(t, p, err, "backends.calico.mode: "+isEmpty, "backends.calico.size: Forbidden: unknown field", "limits: "+isNull)
}

// What is wrong with values may only follow from a mistake of form.
func TestValuesAreCheckedOnceTheFormIsRight(t *testing.T) {
	for yaml, want := range map[string]string{
		"rules: [{match: {pod: [a]}}]":                   "rules[0].match.pod: Forbidden: unknown field; did you mean pods?",
		"backends: {calico: {login: {user: a, key: 7}}}": "backends.calico.login.key: Invalid value: " + noString + ", not number",
		"minAge: 1d\ngracePeriod: -1m":                   "minAge: Invalid value: " + noTime + `, not "1d"`,
	} {
		p, err := policy.Load([]byte(header+yaml), known)
		wantRefusal(t, p, err, want)
	}
}

// What reads objects that protect addresses has no allocations, so a rule for it would match nothing.
func TestRuleForWhatHasNoAllocationsIsRefused(t *testing.T) {
	p, err := policy.Load([]byte(header+"backends: {guard: {enabled: true}}\nrules: [{match: {backends: [guard]}, hold: true}]"),
		append(slices.Clone(known), policy.Known{Name: "guard", Protects: true}))
	wantRefusal(t, p, err, `rules[0].match.backends[0]: Unsupported value: "guard": `+backends)
}

func TestMistakenValuesAreReportedTogether(t *testing.T) {
	p, err := policy.Load([]byte(header+`
gracePeriod: -5m
limits: {maxFraction: 2, maxPodDrop: 3, minEntries: -1}
namespaces: {include: [A], exclude: []}
rules:
- {match: {pods: [a], backends: [etcd]}}
- hold: true
- {match: {pods: ["["]}}
backends:
  calico: {mode: none}
pods: {finished: keep}
protection: {statefulSets: all}
journal: {keep: -1}
`), known)
	wantRefusal(t, p, err,
		`gracePeriod: Invalid value: "-5m": must not be negative`,
		`namespaces.include[0]: Invalid value: "A": `+noPattern,
		`rules[0].match.backends[0]: Unsupported value: "etcd": `+backends,
		"rules[1].match: "+noMatch,
		`rules[2].match.pods[0]: Invalid value: "[": must be a glob pattern: syntax error in pattern`,
		`backends.calico.mode: Invalid value: "none": must not be none`,
		`pods.finished: Unsupported value: "keep": supported values: "hold", "release"`,
		"limits.minEntries: Invalid value: -1: must not be negative",
		"limits.maxFraction: Invalid value: 2: must be above 0 and at most 1",
		"limits.maxPodDrop: Invalid value: 3: must be above 0 and at most 1",
		`protection.statefulSets: Unsupported value: "all": supported values: "ordinalInRange", "ignore"`,
		"journal.keep: Invalid value: -1: must be from 1 to 100",
	)
}
