package whereabouts

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// The annotation keeps the whole spec, including fields unknown to this program, and the whole
// spec is put back, no matter what is next to the tombstone (promises 6 and 8).
func TestTombstoneKeepsTheWholeSpec(t *testing.T) {
	stored := overlappingJSON("10.0.0.4", `{"podref": "default/wéb-0", "n": 9007199254740993, "containerid": "c1"}`, `{}`)
	a, b, ws := leakyOverlapping(t, stored, comesBack(1), map[string]http.HandlerFunc{
		patchAt: first(say(overlappingJSON("10.0.0.4", `{"podref": "_ip-reaper/_released", "n": 9007199254740993}`, `{}`)), say("{}"))})
	if got := outcomes(b.Release(t.Context(), ws)); got != "returned" {
		t.Errorf("Release = %s, want returned", got)
	}
	var got []string
	for _, patch := range a.bodies(patchAt) {
		got = append(got, patch.Type+" "+patch.Body)
	}
	want := []string{
		`application/merge-patch+json {"metadata":{"annotations":{"ip-reaper/spec":"{\"podref\":\"default/wéb-0\",\"n\":9007199254740993,\"containerid\":\"c1\"}"},` +
			`"resourceVersion":"44","uid":"u4"},"spec":{"podref":"_ip-reaper/_released"}}`,
		// The answer to the first patch lacks a field and the annotation.
		`application/json-patch+json [{"op":"replace","path":"/metadata/uid","value":"u4"},{"op":"replace","path":"/metadata/resourceVersion","value":"44"},` +
			`{"op":"replace","path":"/spec","value":{"podref":"default/wéb-0","n":9007199254740993,"containerid":"c1"}},` +
			`{"op":"remove","path":"/metadata/annotations/ip-reaper~1spec"}]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
}

// Promise 2. An overlapping reservation that names no pod is held, even if the policy releases
// allocations without a name.
func TestOverlappingThatNamesNoPodIsHeld(t *testing.T) {
	p := policy.Default()
	p.GracePeriod, p.MinAge = &policy.Duration{}, &policy.Duration{}
	p.Pods.Unnamed = policy.Release
	for _, spec := range []string{
		`{}`, `{"podref": ""}`, `{"podref": "web-0"}`, `{"podref": "a/b/c"}`, `{"podref": "/web-0"}`, `{"podref": "default/"}`,
		`{"containerid": "c1"}`, `{"podref": "", "containerid": "c1"}`, `{"podref": "a/b/c", "containerid": "c1"}`,
	} {
		_, client := newAPI(t, map[string]http.HandlerFunc{
			"GET overlappingrangeipreservations": items(overlappingJSON("10.0.0.4", spec, `{}`)), "GET ippools": items(),
		})
		inv := ipam.TakeInventory(t.Context(), []ipam.Backend{NewOverlapping(client)}, func(string) bool { return true })
		census, err := census.Take(t.Context(), fakeCluster{}, census.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		decisions := judge.Judge(time.Now(), p, inv, census, ledger.Ledger{})
		if len(decisions) != 1 {
			t.Fatalf("%d decisions, want 1", len(decisions))
		}
		for _, d := range decisions {
			if d.Verdict != judge.Held || d.Reason != judge.OwnerUnknown {
				t.Errorf("%s is %v %s, want it held as OwnerUnknown", spec, d.Verdict, d.Reason)
			}
		}
	}
}
