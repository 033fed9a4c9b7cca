package whereabouts

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The API server applies patches with this library. The patch adds the entries and changes
// nothing else. It does not apply to another version of the pool.
func TestAdditionsChangeOnlyFreeOffsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "offset")) })
		odd := rapid.OneOf(key, rapid.SampledFrom([]string{"abc", "007", "+7", "300", "9223372036854775808", "a/b~c"}))
		entry := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf(`{"id":%q,"podref":"default/web-%d"}`, rapid.StringMatching(`[a-c<>]`).Draw(t, "id"), rapid.IntRange(0, 2).Draw(t, "pod"))
		})
		held := rapid.MapOf(odd, entry).Draw(t, "held")
		stored := map[string]any{}
		for k, e := range held {
			stored[k] = json.RawMessage(e)
		}
		spec := map[string]any{"range": "10.0.0.0/24", "more": 1.5}
		if len(held) > 0 || rapid.Bool().Draw(t, "empty") {
			spec["allocations"] = stored
		}
		before, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "x", "resourceVersion": "8"}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		p, err := readPool(before)
		if err != nil {
			t.Fatal(err)
		}
		pending := map[int]ipam.Record{}
		for i, k := range rapid.SliceOfNDistinct(key, 1, 8, rapid.ID[string]).Draw(t, "records") {
			r := poolRecord(k, entry.Draw(t, "entry"))
			if p.checkFree(r, p.respelt(), nil) != nil {
				continue
			}
			if at, there := stored[k]; there {
				t.Fatalf("offset %s holds %s, and checkFree reports it free", k, at)
			}
			pending[i], stored[k] = r, r.Stored
		}
		if len(pending) == 0 {
			return
		}
		spec["allocations"] = stored
		want, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "x", "resourceVersion": "8"}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(p.additions(pending))
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			t.Fatal(err)
		}
		after, err := patch.Apply(before)
		if err != nil {
			t.Fatalf("apply %s: %v", body, err)
		}
		if !sameJSON(want, after) {
			t.Fatalf("the pool is %s, want %s", after, want)
		}
		if _, err := patch.Apply([]byte(strings.Replace(string(before), `"8"`, `"9"`, 1))); err == nil {
			t.Fatal("the patch changes another version of the pool")
		}
	})
}
