package admission_test

import (
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A changed block is one that differs from the block that is there.
type changed struct {
	name string
	by   string
	edit func(b *blockSpec)
}

// tried are the writes of the blocks, each an edit of a block.
func tried(t *testing.T, from blockSpec, edits []changed) []write {
	t.Helper()
	var all []write
	for _, c := range edits {
		b := from.clone()
		c.edit(&b)
		all = append(all, write{c.name, c.by, "patch", "block: block", b.patch(t)})
	}
	return all
}

// theBlock has three addresses that are allocated.
func theBlock() blockSpec { return newBlock(64, "h0", "h1", "h2") }

// spoils are edits that no account may do, of a block that would pass.
var spoils = []changed{
	{"change the affinity", "writes", func(b *blockSpec) { b.Affinity = "host:evil" }},
	{"change the range", "writes", func(b *blockSpec) { b.CIDR = "10.9.0.0/26" }},
	{"mark the block deleted", "writes", func(b *blockSpec) { b.Deleted = true }},
	{"change strictAffinity", "writes", func(b *blockSpec) { b.Strict = true }},
	{"do not count the write", "writes", func(b *blockSpec) { b.Sequence-- }},
	{"count two writes", "writes", func(b *blockSpec) { b.Sequence++ }},
	{"make the block smaller", "writes", func(b *blockSpec) { b.Allocations = b.Allocations[:63] }},
	{"make the block larger", "writes", func(b *blockSpec) { b.Allocations = append(b.Allocations, nil) }},
	{"change an owner", "writes", func(b *blockSpec) { b.Attributes[0] = attribute("evil") }},
	{"exchange two owners", "writes", func(b *blockSpec) { b.Attributes[0], b.Attributes[1] = b.Attributes[1], b.Attributes[0] }},
	{"give an address to the owner of another", "writes", func(b *blockSpec) { b.Allocations[0] = b.Allocations[2] }},
	{"point to no attribute", "writes", func(b *blockSpec) { b.Allocations[0] = new(9) }},
	{"leave an attribute without an address", "writes", func(b *blockSpec) { b.Attributes = append(b.Attributes, attribute("evil")) }},
	{"free an address twice", "writes", func(b *blockSpec) { b.Unallocated = append(b.Unallocated, b.Unallocated[len(b.Unallocated)-1]) }},
	{"free an address that is allocated", "writes", func(b *blockSpec) { b.Unallocated = append(b.Unallocated, 0) }},
	{"free an address that is not in the block", "writes", func(b *blockSpec) { b.Unallocated = append(b.Unallocated, 99) }},
	{"lose a free address", "writes", func(b *blockSpec) { b.Unallocated = b.Unallocated[1:] }},
	{"put another free address in the place of one", "writes", func(b *blockSpec) { b.Unallocated[0] = b.Unallocated[1] }},
	{"exchange two free addresses", "writes", func(b *blockSpec) { b.Unallocated[0], b.Unallocated[1] = b.Unallocated[1], b.Unallocated[0] }},
	{"change a sequence number", "writes", func(b *blockSpec) { b.Numbers["0"] = 99 }},
	{"lose a sequence number", "writes", func(b *blockSpec) { delete(b.Numbers, "0") }},
	{"add a sequence number", "writes", func(b *blockSpec) { b.Numbers["40"] = 99 }},
}

// The accounts that release may only free addresses of a block, at the end of the free
// ones; the account that restores may only allocate free ones.
func TestBlocksOnlyFreeOrAreRestored(t *testing.T) {
	f := newFixture(t)
	release := append(tried(t, theBlock().free(1), spoils), tried(t, theBlock(), []changed{
		{"free an address", "", func(b *blockSpec) { *b = b.free(1) }},
		{"free all", "", func(b *blockSpec) { *b = b.free(0, 1, 2) }},
		{"free two, the freed ones in another order", "writes", func(b *blockSpec) { *b = b.free(2, 1) }},
		{"free two as one", "writes", func(b *blockSpec) {
			*b = b.free(1, 2)
			b.Unallocated[len(b.Unallocated)-1] = 1
		}},
		{"free an address to be the next", "writes", func(b *blockSpec) {
			*b = b.free(1)
			b.Unallocated = append([]int{1}, b.Unallocated[:len(b.Unallocated)-1]...)
		}},
		{"free an address and keep its number", "writes", func(b *blockSpec) {
			*b = b.free(1)
			b.Numbers["1"] = 6
		}},
		{"allocate an address", "writes", func(b *blockSpec) { *b = b.take(9, "evil") }},
		{"only count", "", func(b *blockSpec) { b.Sequence++ }},
	})...)
	patch := func(path, value string) string {
		p := theBlock().free().patch(t)
		return p[:len(p)-1] + `,{"op":"add","path":"/metadata/` + path + `","value":` + value + `}]`
	}
	metadata := []write{
		{"add a label", "writes", "patch", "block: block", patch("labels", `{"x":"y"}`)},
		{"add an annotation", "writes", "patch", "block: block", patch("annotations", `{"x":"y"}`)},
		{"add a finalizer", "writes", "patch", "block: block", patch("finalizers", `["example.com/x"]`)},
	}
	f.releasing(release...)
	f.releasing(metadata...)
	f.releasing([]write{
		{"delete a block", "other", "delete", "block: block", ``},
		{"create a block", "other", "create", "block: ", theBlock().json(t, "another")},
		{"create an affinity", "other", "create", "affinity: ",
			`{"apiVersion":"crd.projectcalico.org/v1","kind":"BlockAffinity","metadata":{"name":"a"},"spec":{"cidr":"10.1.0.0/26","node":"evil","state":"confirmed","deleted":"false"}}`},
	}...)
	f.each(reap.RestoreAccount, tried(t, theBlock().take(9, "h9"), spoils))
	f.each(reap.RestoreAccount, metadata)
	f.each(reap.RestoreAccount, tried(t, theBlock(), []changed{
		{"allocate an address", "", func(b *blockSpec) { *b = b.take(9, "h9") }},
		{"allocate an address for an owner of the block", "", func(b *blockSpec) {
			*b = b.take(9, "h9")
			b.Attributes, b.Allocations[9] = b.Attributes[:3], new(0)
		}},
		{"allocate an address that stays free", "writes", func(b *blockSpec) {
			*b = b.take(9, "h9")
			b.Unallocated = append(b.Unallocated, 9)
		}},
		{"free an address", "writes", func(b *blockSpec) { *b = b.free(1) }},
	}))
	f.each(reap.RestoreAccount, []write{
		{"delete a block", "other", "delete", "block: block", ``},
		{"create a block", "other", "create", "block: ", theBlock().json(t, "another")},
	})
}

// The accounts that release may count a handle down and delete it; the account that
// restores may count it up and create one.
func TestHandlesOnlyCountDownOrAreRestored(t *testing.T) {
	f := newFixture(t)
	const handle, first, second = "handle: h1", "/spec/block/10.1.0.0~126", "/spec/block/10.2.0.0~126"
	set := func(path, value string) string {
		return `[{"op":"add","path":"` + path + `","value":` + value + `}]`
	}
	created := newHandle("k8s-pod-network.c9", `"10.1.0.0/26":1`)
	both := []write{
		{"change the ID", "writes", "patch", handle, set("/spec/handleID", `"evil"`)},
		{"mark it deleted", "writes", "patch", handle, set("/spec/deleted", `true`)},
		{"add a label", "writes", "patch", handle, set("/metadata/labels", `{"x":"y"}`)},
		{"add a finalizer", "writes", "patch", handle, set("/metadata/finalizers", `["example.com/x"]`)},
		{"count below zero", "writes", "patch", handle, set(first, `-1`)},
		{"count nothing", "writes", "patch", handle, set("/spec/block", `{}`)},
	}
	release := []write{
		{"count down", "", "patch", handle, set(first, `1`)},
		{"leave a block", "", "patch", handle, `[{"op":"remove","path":"` + second + `"}]`},
		{"count down to zero", "writes", "patch", handle, set(first, `0`)},
		{"count up", "writes", "patch", handle, set(first, `3`)},
		{"count down and up", "writes", "patch", handle, set("/spec/block", `{"10.1.0.0/26":1,"10.2.0.0/26":2}`)},
		{"count in another block", "writes", "patch", handle, set("/spec/block/10.9.0.0~126", `1`)},
		{"delete a handle", "", "delete", handle, ``},
		{"create a handle", "other", "create", "handle: ", created},
	}
	f.releasing(slices.Concat(both, release)...)
	f.each(reap.RestoreAccount, both)
	f.each(reap.RestoreAccount, []write{
		{"count up", "", "patch", handle, set(first, `3`)},
		{"count in another block", "", "patch", handle, set("/spec/block/10.9.0.0~126", `1`)},
		{"create a handle", "", "create", "handle: ", created},
		{"count down", "writes", "patch", handle, set(first, `1`)},
		{"leave a block", "writes", "patch", handle, `[{"op":"remove","path":"` + second + `"}]`},
		{"delete a handle", "other", "delete", handle, ``},
	})
}
