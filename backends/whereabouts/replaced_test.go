package whereabouts

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The annotation keeps the whole spec, including fields unknown to this program, and the whole
// spec is put back, no matter what is next to the tombstone (promises 6 and 8).
func TestTombstoneKeepsTheWholeSpec(t *testing.T) {
	stored := overlappingJSON("10.0.0.4", `{"podref": "default/wéb-0", "n": 9007199254740993, "containerid": "c1"}`, `{}`)
	a, b, ws := leakyOverlapping(t, comesBack("wéb-0", 1), map[string]http.HandlerFunc{
		patchAt: first(say(overlappingJSON("10.0.0.4", `{"podref": "_ip-reaper/_released", "n": 9007199254740993}`, `{}`)), say("{}"))}, stored)
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
	for _, spec := range []string{
		`{}`, `{"podref": ""}`, `{"podref": "wéb-0"}`, `{"podref": "a/b/c"}`, `{"podref": "/wéb-0"}`, `{"podref": "default/"}`,
		`{"containerid": "c1"}`, `{"podref": "", "containerid": "c1"}`, `{"podref": "a/b/c", "containerid": "c1"}`,
	} {
		t.Run(spec, func(t *testing.T) {
			pod := ipam.Document{APIVersion: "v1", Kind: "Pod", Data: []byte(`{"metadata": {"namespace": "default", "name": "other"}, "status": {"podIP": "10.9.0.1"}}`)}
			wantVerdicts(t, []ipam.Document{pod, reservationOf("10.0.0.4", spec)}, policy.Release, verdicts{"held OwnerUnknown": {"10.0.0.4"}})
		})
	}
}
