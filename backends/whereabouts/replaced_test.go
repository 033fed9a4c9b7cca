package whereabouts

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Promises 6 and 8. What an interrupted release replaced comes back as it was.
func TestOldSpecIsPutBackWhateverItWas(t *testing.T) {
	const body = `{"metadata":{"annotations":{"%"},"resourceVersion":"44","uid":"u4"},"spec":`
	spec, owner := strings.Replace(body, `"%"`, `"ip-reaper/spec":null`, 1), strings.Replace(body, `"%"`, `"ip-reaper/owner":null`, 1)
	for _, tt := range []struct {
		name        string
		stands      string // the spec beside the tombstone
		annotations map[string]string
		want        string // the patch
	}{
		{"as the plugin writes it", `{"podref":"_ip-reaper/_released","ifname":"net1"}`,
			map[string]string{specAnnotation: `{"podref":"default/web-0","ifname":"net1"}`}, spec + `{"podref":"default/web-0"}}`},
		{"with other fields", `{"podref":"_ip-reaper/_released","n":9007199254740993,"list":[1]}`,
			map[string]string{specAnnotation: `{"podref":"default/web-0","n":9007199254740993,"list":[1]}`}, spec + `{"podref":"default/web-0"}}`},
		{"with fields that were changed meanwhile", `{"podref":"_ip-reaper/_released","ifname":"net9","added":{"a":1},"in":{"a":1,"b":2},"deep":{"x":7}}`,
			map[string]string{specAnnotation: `{"podref":"default/web-0","ifname":"net1","containerid":"c1","in":{"b":3},"deep":{"x":7}}`},
			spec + `{"added":null,"containerid":"c1","ifname":"net1","in":{"a":null,"b":3},"podref":"default/web-0"}}`},
		{"with an odd podref", `{"podref":"_ip-reaper/_released"}`,
			map[string]string{specAnnotation: `{"podref":"Default/wéb 0<"}`}, spec + `{"podref":"Default/wéb 0\u003c"}}`},
		{"of an earlier build", `{"podref":"_ip-reaper/_released","ifname":"net1","n":9007199254740993}`,
			map[string]string{ownerAnnotation: `default/web-0`}, owner + `{"podref":"default/web-0"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			annotations, err := json.Marshal(tt.annotations)
			if err != nil {
				t.Fatal(err)
			}
			stored := overlappingJSON("10.0.0.4", tt.stands, string(annotations))
			a, client := newAPI(t, map[string]http.HandlerFunc{getAt: say(stored), patchAt: say("{}")})
			var o object
			if err := kube.Decode([]byte(stored), &o); err != nil {
				t.Fatal(err)
			}
			r := overlappingPool(o, nil).Allocations[0]
			r.Pool = anOverlapping
			if err := NewOverlapping(client).Mend(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, patch := range a.bodies(patchAt) {
				got = append(got, patch.Body)
			}
			if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
		})
	}
}

// The tombstone keeps fields that this program does not know.
func TestTombstoneKeepsTheWholeSpec(t *testing.T) {
	stored := overlappingJSON("10.0.0.4", `{"podref": "default/web-0", "n": 9007199254740993, "containerid": "c1"}`, `{}`)
	a, b, ws := leakyOverlapping(t, stored, comesBack(1), map[string]http.HandlerFunc{
		patchAt: first(say(overlappingJSON("10.0.0.4", `{"podref": "_ip-reaper/_released", "n": 9007199254740993}`, `{}`)), say("{}"))})
	if got := outcomes(b.Release(t.Context(), ws)); got != "returned" {
		t.Errorf("Release = %s, want returned", got)
	}
	var got []string
	for _, patch := range a.bodies(patchAt) {
		got = append(got, patch.Body)
	}
	want := []string{
		`{"metadata":{"annotations":{"ip-reaper/spec":"{\"podref\":\"default/web-0\",\"n\":9007199254740993,\"containerid\":\"c1\"}"},` +
			`"resourceVersion":"44","uid":"u4"},"spec":{"podref":"_ip-reaper/_released"}}`,
		// The answer to the first patch lacks a field and the annotation.
		`{"metadata":{"annotations":{"ip-reaper/spec":null},"resourceVersion":"44","uid":"u4"},` +
			`"spec":{"containerid":"c1","podref":"default/web-0"}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
}

// Promise 2. An overlapping reservation that names no pod is held, also if the
// policy releases allocations without a name.
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
		inv := reaper.TakeInventory(t.Context(), []reaper.Backend{NewOverlapping(client)}, func(string) bool { return true })
		census, err := reaper.TakeCensus(t.Context(), fakeCluster{}, reaper.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		decisions := reaper.Judge(time.Now(), p, inv, census, reaper.Ledger{})
		if len(decisions) != 1 {
			t.Fatalf("%d decisions, want 1", len(decisions))
		}
		for _, d := range decisions {
			if d.Verdict != reaper.Held || d.Reason != reaper.OwnerUnknown {
				t.Errorf("%s is %v %s, want it held as OwnerUnknown", spec, d.Verdict, d.Reason)
			}
		}
	}
}
