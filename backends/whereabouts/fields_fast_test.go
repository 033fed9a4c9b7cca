package whereabouts

import (
	"encoding/json"
	"testing"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Promise 1, 6. No object with a field that is not known passes for one without.
func FuzzHasOnly(f *testing.F) {
	for _, entry := range []string{
		`{"id":"a","podref":"ns/p","ifname":"net1"}`, `{"id":"a","podref":"ns/p"}`, `{"podref":"ns/p","id":""}`, `{"id":"","x":"y"}`,
		`{"id":"a","x":1}`, `{"id":"a","podref":"n/p","podref":"n/q"}`, `{"id":"\"","podref":"n/p"}`, `{"id":null,"x":""}`,
		`{"ifname":{"a":"b"},"id":"a"}`, `{"ID":"a","id":"b"}`, `{"id":"a"`, `{}`, `null`, `"id"`, `{ "id" : "a" }`,
	} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		var a v1alpha1.IPAllocation
		stored := json.RawMessage(entry)
		if err := kube.Decode(stored, &a); err != nil || !hasOnly(stored, a.ContainerID, a.PodRef, a.IfName) {
			return
		}
		if field := unknownField(stored, "entry", entryFields); field != "" {
			t.Errorf("%s has %s, which is not known", entry, field)
		}
	})
}
