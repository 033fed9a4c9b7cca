package policy_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
)

const (
	topFields = "apiVersion, kind, dryRun, gracePeriod, minAge, namespaces, rules, backends, evidence, pods, nodes, limits, protection, journal"
	isNull    = "Required value: must not be null; leave the field out for its default"
	isEmpty   = "Required value: must not be empty"
	noMatch   = "Required value: must have namespaces, pods or backends; set the terms of all allocations outside the rules"
	noString  = "must be a string, in quotes if YAML takes it for something else"
	noPattern = `must be a lower-case name, in which * ? [a-z] [^a-z] and \ have their meaning as in a shell`
	noTime    = `must be a duration in units from h to ns, such as "15m" or "1h30m", and below 100000h`
	backends  = `supported values: "calico", "overlapping", "whereabouts"`
)

func TestRefusals(t *testing.T) {
	for _, tt := range []struct{ name, yaml, want string }{
		{"unknown field", "node: {unreachable: hold}",
			"node: Forbidden: unknown field, known are " + topFields},
		{"unknown field of a backend", "backends: {calico: {datastoreType: etcdv3}}",
			"backends.calico.datastoreType: Forbidden: unknown field, known are enabled, mode, login, places, labels"},
		{"field in another case", "limits: {MaxFraction: 0.1}",
			"limits.MaxFraction: Forbidden: unknown field, known are maxReleases, maxFraction, maxPodDrop, minEntries"},
		{"Go name of an embedded field", "gracePeriod: {Duration: 5}",
			"gracePeriod: Invalid value: " + noTime},
		{"unknown field that is no word", `"a\nb": 1`,
			"a\nb: Forbidden: unknown field, known are " + topFields},
		{"key twice", "minAge: 1m\nminAge: 2m", `line 4: key "minAge" already set in map`},

		{"mapping wanted", "limits: 3", "limits: Invalid value: 3: must be a mapping"},
		{"list wanted", "rules: {hold: true}", "rules: Invalid value: must be a list"},
		{"list of patterns wanted", "namespaces: {exclude: kube-system}",
			`namespaces.exclude: Invalid value: "kube-system": must be a list`},
		{"string wanted", "namespaces: {exclude: [no]}",
			"namespaces.exclude[0]: Invalid value: false: " + noString},
		{"whole number wanted", "limits: {maxReleases: 1.5}",
			"limits.maxReleases: Invalid value: 1.5: must be a whole number"},
		{"number wanted", "limits: {maxFraction: 50%}",
			`limits.maxFraction: Invalid value: "50%": must be a number`},
		{"boolean wanted", "rules: [{match: {pods: [a]}, hold: maybe}]",
			`rules[0].hold: Invalid value: "maybe": must be true or false`},

		{"null mapping", "limits:", "limits: " + isNull},
		{"null item", "rules: [null]", "rules[0]: " + isNull},
		{"null backend", "backends: {calico: }", "backends.calico: " + isNull},

		{"duration without unit", "gracePeriod: 15",
			"gracePeriod: Invalid value: 15: " + noTime},
		{"duration without unit in quotes", `minAge: "15"`, `minAge: Invalid value: "15": ` + noTime},
		{"duration in days", "gracePeriod: 1d", `gracePeriod: Invalid value: "1d": ` + noTime},
		{"duration too long", "gracePeriod: 9999999h", `gracePeriod: Invalid value: "9999999h": ` + noTime},
		{"empty duration", "gracePeriod: ''", "gracePeriod: " + isEmpty},
		{"negative grace", "gracePeriod: -5m", `gracePeriod: Invalid value: "-5m": must not be negative`},
		{"negative age", "minAge: -1ns", `minAge: Invalid value: "-1ns": must not be negative`},
		{"negative grace of a rule", "rules: [{match: {pods: [a]}, gracePeriod: -1h}]",
			`rules[0].gracePeriod: Invalid value: "-1h": must not be negative`},
		{"negative age of a rule", "rules: [{match: {pods: [a]}, minAge: -1h}]",
			`rules[0].minAge: Invalid value: "-1h": must not be negative`},

		{"nothing included", "namespaces: {include: []}",
			"namespaces.include: Required value: must have a pattern; leave the field out for all namespaces"},
		{"empty pattern", "namespaces: {exclude: ['']}", "namespaces.exclude[0]: " + isEmpty},
		{"malformed pattern", "namespaces: {include: [a, 'b[']}",
			`namespaces.include[1]: Invalid value: "b[": must be a glob pattern: syntax error in pattern`},
		{"pattern malformed at its end", `rules: [{match: {pods: ["a*\\"]}}]`,
			`rules[0].match.pods[0]: Invalid value: "a*\\": must be a glob pattern: syntax error in pattern`},
		{"pattern in upper case", "namespaces: {exclude: [Kube-System]}",
			`namespaces.exclude[0]: Invalid value: "Kube-System": ` + noPattern},
		{"negation of a shell", "rules: [{match: {namespaces: ['[!a]']}}]",
			`rules[0].match.namespaces[0]: Invalid value: "[!a]": ` + noPattern},
		{"namespace with pod", "rules: [{match: {pods: [a/b]}}]",
			`rules[0].match.pods[0]: Invalid value: "a/b": ` + noPattern},

		{"rule without match", "rules: [{hold: true}]", "rules[0].match: " + noMatch},
		{"match of empty lists", "rules: [{match: {pods: [], backends: []}}]", "rules[0].match: " + noMatch},
		{"misspelt match", "rules: [{match: {pod: [a]}}]",
			"rules[0].match.pod: Forbidden: unknown field, known are namespaces, pods, backends"},
		{"rule for an unknown backend", "rules: [{match: {backends: [calico, whereabout]}}]",
			`rules[0].match.backends[1]: Unsupported value: "whereabout": ` + backends},
		{"malformed pattern of backends", "rules: [{match: {backends: ['[']}}]",
			`rules[0].match.backends[0]: Invalid value: "[": must be a glob pattern: syntax error in pattern`},
		{"unknown backend", "backends: {Calico: {}}",
			`backends.Calico: Unsupported value: "Calico": ` + backends},

		{"switch in quotes", `backends: {calico: {enabled: "true"}}`,
			`backends.calico.enabled: Invalid value: "true": must be auto, true or false, the last two without quotes`},
		{"unknown disposition", "pods: {finished: keep}",
			`pods.finished: Unsupported value: "keep": supported values: "hold", "release"`},
		{"disposition in another case", "pods: {superseded: Hold}",
			`pods.superseded: Unsupported value: "Hold": supported values: "hold", "release"`},
		{"unknown value of annotations", "evidence: {annotations: none}",
			`evidence.annotations: Unsupported value: "none": supported values: "keep", "own"`},
		{"unknown disposition of nodes", "nodes: {unreachable: drain}",
			`nodes.unreachable: Unsupported value: "drain": supported values: "hold", "release"`},
		{"unknown protection", "protection: {statefulSets: all}",
			`protection.statefulSets: Unsupported value: "all": supported values: "ordinalInRange", "ignore"`},

		{"negative releases", "limits: {maxReleases: -1}",
			"limits.maxReleases: Invalid value: -1: must not be negative; 0 means no limit"},
		{"no fraction", "limits: {maxFraction: 0}",
			"limits.maxFraction: Invalid value: 0: must be above 0 and at most 1"},
		{"fraction in percent", "limits: {maxFraction: 50}",
			"limits.maxFraction: Invalid value: 50: must be above 0 and at most 1"},
		{"no drop", "limits: {maxPodDrop: 0}",
			"limits.maxPodDrop: Invalid value: 0: must be above 0 and at most 1"},
		{"negative entries", "limits: {minEntries: -20}",
			"limits.minEntries: Invalid value: -20: must not be negative"},
		{"no journal", "journal: {keep: 0}", "journal.keep: Invalid value: 0: must be from 1 to 100"},
		{"restored neither held nor released", "rules: [{match: {pods: [a]}, restored: keep}]",
			`rules[0].restored: Unsupported value: "keep": supported values: "hold", "release"`},
		{"unknown nodes neither held nor released", "nodes: {unknown: keep}",
			`nodes.unknown: Unsupported value: "keep": supported values: "hold", "release"`},
		{"a negative hold", "journal: {restoreHold: -1h}", `journal.restoreHold: Invalid value: "-1h": must not be negative`},
		{"a negative time of journals", "journal: {keepFor: -1h}", `journal.keepFor: Invalid value: "-1h": must not be negative`},
		{"journal too long", "journal: {keep: 101}", "journal.keep: Invalid value: 101: must be from 1 to 100"},
		{"journal of half a run", "journal: {keep: 0.5}", "journal.keep: Invalid value: 0.5: must be a whole number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := policy.Load([]byte(header+tt.yaml), known)
			wantRefusal(t, p, err, tt.want)
		})
	}
}

// Unknown fields are reported together, and beside them the first value of a wrong type
// of each rule, of each backend and of the rest.
func TestMistakesOfForm(t *testing.T) {
	p, err := policy.Load([]byte(header+`
gracePeriod: -5m
node: {}
limits: {maxfraction: 2, maxreleases: many}
namespaces: {include: [A]}
rules:
- {match: {pod: [a], backends: [etcd]}, grace: 1d}
- 3
- {match: {pods: [a, 1]}, gracePeriod: 5}
- {match: {pods: [a]}, gracePeriod: 5}
backends:
  calico: {enabled: 1, Mode: none}
  etcd: {}
`), known)
	wantRefusal(t, p, err,
		"limits.maxfraction: Forbidden: unknown field, known are maxReleases, maxFraction, maxPodDrop, minEntries",
		"limits.maxreleases: Forbidden: unknown field, known are maxReleases, maxFraction, maxPodDrop, minEntries",
		"node: Forbidden: unknown field, known are "+topFields,
		"rules[0].grace: Forbidden: unknown field, known are match, gracePeriod, minAge, hold, restored",
		"rules[0].match.pod: Forbidden: unknown field, known are namespaces, pods, backends",
		"rules[1]: Invalid value: 3: must be a mapping",
		"rules[2].gracePeriod: Invalid value: 5: "+noTime,
		"rules[3].gracePeriod: Invalid value: 5: "+noTime,
		"backends.calico.enabled: Invalid value: 1: must be auto, true or false, the last two without quotes",
		"backends.calico.Mode: Forbidden: unknown field, known are enabled, mode, login, places, labels",
		`backends.etcd: Unsupported value: "etcd": `+backends,
	)
	p, err = policy.Load([]byte(header+"minAge: 1m\nminAge: 2m\ndryRun: maybe\ndryRun: false\nlimits:\n"), known)
	wantRefusal(t, p, err, `line 4: key "minAge" already set in map`, `line 6: key "dryRun" already set in map`)
	p, err = policy.Load([]byte(header+"dryRun: maybe\nlimits:\nbackends: {calico: {mode: '', size: }}\n"), known)
	wantRefusal(t, p, err, "backends.calico.mode: "+isEmpty, "backends.calico.size: "+isNull, "limits: "+isNull)
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
		"limits.maxFraction: Invalid value: 2: must be above 0 and at most 1",
		"limits.maxPodDrop: Invalid value: 3: must be above 0 and at most 1",
		"limits.minEntries: Invalid value: -1: must not be negative",
		`protection.statefulSets: Unsupported value: "all": supported values: "ordinalInRange", "ignore"`,
		"journal.keep: Invalid value: -1: must be from 1 to 100",
	)
}
