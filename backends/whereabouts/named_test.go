package whereabouts

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper"
)

func TestNamesAreFoundAsTheyAreWritten(t *testing.T) {
	for _, tt := range []struct {
		document string
		want     bool
	}{
		{`{"podref":"a/b"}`, true},
		{`{"podref":"a\/b"}`, true},
		{`{"podref":"\u0061/b"}`, true},
		{`["x\\","a/b"]`, true},
		{`["x\\\"","a/b"]`, true},
		{`["\"a/b\""]`, false},
		{`["x\\\"a/b"]`, false},
		{`{"podref":"a/bc","id":"xa/b"}`, false},
		{`["a/b `, false},
		{`["\`, false},
		{`[]`, false},
		{``, false},
	} {
		if got := namesAny(json.RawMessage(tt.document), map[string][]int{"a/b": nil}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.document, got, tt.want)
		}
	}
}

// Promise 1. No text is overlooked that a decoder would find.
func TestEveryStringOfADocumentIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "strings")
		document, err := json.Marshal(map[string]any{some[0]: some})
		if err != nil {
			t.Fatal(err)
		}
		var decoded map[string][]string
		if err := json.Unmarshal(document, &decoded); err != nil {
			t.Fatal(err)
		}
		for key, texts := range decoded {
			for _, text := range append(texts, key) {
				if !namesAny(document, map[string][]int{text: nil}) {
					t.Fatalf("%q is not found in %s", text, document)
				}
			}
		}
		absent := rapid.String().Draw(t, "another")
		present := false
		for key, texts := range decoded {
			for _, text := range append(texts, key) {
				present = present || text == absent
			}
		}
		if namesAny(document, map[string][]int{absent: nil}) != present {
			t.Fatalf("%q is found in %s: %v, want %v", absent, document, !present, present)
		}
	})
}

// The IPPools are searched once for a batch. The time grows with the IPPools and with the
// batch, and not with their product.
func BenchmarkHolders(b *testing.B) {
	for _, entries := range []int{11_000, 44_000, 165_000} {
		var pools []json.RawMessage
		for n := range entries / 5_500 {
			allocations := make(map[string]map[string]string)
			for i := range 5_500 {
				allocations[fmt.Sprint(i+1)] = map[string]string{
					"id": fmt.Sprintf("%064x", n*5_500+i), "podref": fmt.Sprintf("default/live-%d", n*5_500+i), "ifname": "net1",
				}
			}
			spec, err := json.Marshal(map[string]any{"range": fmt.Sprintf("10.%d.0.0/16", n), "allocations": allocations})
			if err != nil {
				b.Fatal(err)
			}
			pools = append(pools, json.RawMessage(fmt.Sprintf(`{"metadata":{"namespace":"kube-system","name":"10.%d.0.0-16"},"spec":%s}`, n, spec)))
		}
		for _, batch := range []int{1, 500} {
			rs := make([]reaper.Allocation, batch)
			for i := range rs {
				rs[i].IP = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
				rs[i].Key = rs[i].IP.String()
				rs[i].Owner.Pod = reaper.PodRef{Namespace: "default", Name: fmt.Sprint("gone-", i)}
			}
			b.Run(fmt.Sprintf("entries=%d/batch=%d", entries, batch), func(b *testing.B) {
				for b.Loop() {
					holders(pools, rs)
				}
			})
		}
	}
}
