package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
)

const header = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"

var known = []string{"calico", "overlapping", "whereabouts"}

// fullPolicy sets every field to another value than its default.
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
backends:
  calico:
    enabled: auto
    datastore: etcdv3
    etcd:
      endpoints: ["https://etcd-0.etcd:2379", "http://[fd00::1]:2379"]
      username: ip-reaper
      passwordFile: /etcd/password
      caFile: /etcd/ca.crt
      certFile: /etcd/tls.crt
      keyFile: /etcd/tls.key
  overlapping: {enabled: false}
  whereabouts: {enabled: true}
pods: {finished: release, superseded: hold, unnamed: release}
nodes: {unreachable: release}
limits: {maxReleases: 100, maxFraction: 1, maxPodDrop: 0.25, minEntries: 0}
protection:
  statefulSets: ignore
  reservedIPs:
  - resource: {group: network.example.com, version: v1alpha1, resource: reservedips}
    address: "{.spec.ips[*]}"
    pod: .spec.podName
    namespace: .spec.podNamespace
    ttl: .spec.ttl
    deletedAt: .status.deletedAt
    deleteExpired: true
journal: {keep: 3}
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
