package admission_test

import (
	"context"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// The definitions of Calico 3.20 to 3.22.1 have no sequence numbers, so the API server drops them.
// Addresses of these blocks are freed and restored like others.
func TestBlocksWithoutSequenceNumbers(t *testing.T) {
	f := newFixture(t)
	f.earlierBlocks()
	f.create("block", theBlock().json(t, "earlier"))
	on := func(from blockSpec, edits ...changed) []write {
		all := tried(t, from, edits)
		for i := range all {
			all[i].target = "block: earlier"
		}
		return all
	}
	f.releasing(on(theBlock(),
		changed{"free an address", "", func(b *blockSpec) { *b = b.free(1) }},
		changed{"free all", "", func(b *blockSpec) { *b = b.free(0, 1, 2) }},
		changed{"allocate an address", "writes", func(b *blockSpec) { *b = b.take(9, "evil") }},
		changed{"change an owner", "writes", func(b *blockSpec) { b.Attributes[0] = attribute("evil") }},
	)...)
	f.each(reap.RestoreAccount, on(theBlock(),
		changed{"allocate an address", "", func(b *blockSpec) { *b = b.take(9, "h9") }},
		changed{"free an address", "writes", func(b *blockSpec) { *b = b.free(1) }},
	))
}

// earlierBlocks takes the sequence numbers out of the definition of blocks until the test ends.
func (f *fixture) earlierBlocks() {
	f.Helper()
	const name, spec = "ipamblocks.crd.projectcalico.org", "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
	definitions := f.Dynamic.Resource(cluster.Definitions)
	before, err := definitions.Get(f.Context(), name, metav1.GetOptions{})
	f.must(err)
	was, err := json.Marshal(before.Object["spec"])
	f.must(err)
	_, err = definitions.Patch(f.Context(), name, types.JSONPatchType, []byte(`[
		{"op":"remove","path":"`+spec+`/x-kubernetes-preserve-unknown-fields"},
		{"op":"remove","path":"`+spec+`/properties/sequenceNumber"},
		{"op":"remove","path":"`+spec+`/properties/sequenceNumberForAllocation"}]`), metav1.PatchOptions{})
	f.must(err)
	drops := func(ctx context.Context) bool {
		made, err := f.Dynamic.Resource(resources["block"]).Create(ctx, object(f.T, theBlock().json(f, "probe")), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		f.must(err)
		numbers := made.Object["spec"].(map[string]any)
		return numbers["sequenceNumber"] == nil && numbers["sequenceNumberForAllocation"] == nil
	}
	cluster.AwaitT(f, "the earlier blocks", func() bool { return drops(f.Context()) })
	f.Cleanup(func() {
		ctx := context.WithoutCancel(f.Context()) // which has ended by now
		_, err := definitions.Patch(ctx, name, types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec","value":`+string(was)+`}]`), metav1.PatchOptions{})
		f.must(err)
		cluster.AwaitT(f, "the later blocks", func() bool { return !drops(ctx) })
	})
}
