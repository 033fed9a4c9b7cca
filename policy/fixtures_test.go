package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ip-reaper/ip-reaper/policy"
)

const header = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"

// known are backends, one with settings.
var known = []policy.Known{
	{Name: "calico", Summary: "What `Calico` holds", Settings: func() any { return new(settings) }},
	{Name: "overlapping"},
	{Name: "whereabouts", Summary: "Pools"},
}

// settings are made up, with a field of each kind.
type settings struct {
	Mode   string           `json:"mode,omitzero"`
	Login  login            `json:"login,omitzero"`
	Places []place          `json:"places,omitzero"`
	Labels map[string]place `json:"labels,omitzero"`
}

type login struct {
	User string `json:"user,omitzero"`
	Key  string `json:"key,omitzero"`
}

type place struct {
	Name  string          `json:"name"`
	Since metav1.Duration `json:"since,omitzero"` // decodes itself, but not as a Duration does
}

var (
	_ policy.Validator = (*settings)(nil)
	_ policy.Schemer   = (*settings)(nil)
	_ policy.Exampler  = (*settings)(nil)
)

func (s *settings) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Mode == "none" {
		errs = append(errs, field.Invalid(at.Child("mode"), s.Mode, "must not be none"))
	}
	if s.Login.User != "" && s.Login.Key == "" {
		errs = append(errs, field.Required(at.Child("login", "key"), "must be set where user is"))
	}
	return errs
}

func (*settings) Schema() []byte {
	return []byte(`{"minProperties": 1, "properties": {"places": {"type": "array"}, "mode": {"$ref": "#/$defs/text"}, "login": {"type": "object"}}}`)
}

func (*settings) Example() []byte {
	return []byte("# Fast or slow.\nmode: fast   # or slow\n\nplaces:\n- {name: here}\n")
}

// fullPolicy sets every field to a value other than its default.
const fullPolicy = header + `
dryRun: false
gracePeriod: 1h30m
minAge: 0
namespaces: {include: [team-*], exclude: [team-a]}
rules:
- match: {namespaces: ["db-*"], pods: ["pg-[0-9]"], backends: [whereabouts, "over*"]}
  gracePeriod: 24h
  minAge: 1.5s
  hold: true
  restored: release
backends:
  calico:
    enabled: auto
    mode: slow
    login: {user: me, key: k}
    places: [{name: a}]
  overlapping: {enabled: false}
  whereabouts: {enabled: true}
evidence: {annotations: own}
pods: {finished: release, stuck: release, superseded: hold, unnamed: release}
nodes: {unreachable: release, unknown: release, foreign: release}
limits: {maxReleases: 100, maxFraction: 1, maxPodDrop: 0.25, minEntries: 0}
protection:
  statefulSets: ignore
journal: {keep: 3, keepFor: 36h, restoreHold: 2h}
`

// wantRefusal fails the test unless err is an *Error with exactly these messages,
// one per line, and the Policy is zero.
func wantRefusal(t *testing.T, p policy.Policy, err error, messages ...string) {
	t.Helper()
	var refusal *policy.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("Load = %+v, %v, want an *Error", p, err)
	}
	if diff := cmp.Diff(messages, refusal.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got, want := err.Error(), strings.Join(messages, "\n"); got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
	if diff := cmp.Diff(policy.Policy{}, p); diff != "" {
		t.Errorf("Load returns a part of a refused policy:\n%s", diff)
	}
}
