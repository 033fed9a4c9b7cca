package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// poolEntries make the largest pool: etcd takes 1.5 MiB for an object.
const poolEntries = 11_000

// An expression that costs too much is a refusal. The largest pool costs less, and so do
// as many removals as one write of ip-reaper has. With -short, only what passes is tried on it.
func TestLargestPoolIsNotTooMuchWork(t *testing.T) {
	f := newFixture(t)
	var entries, removals, additions []string
	for i := 1; i <= poolEntries; i++ {
		entries = append(entries, fmt.Sprintf(`"%d":{"id":"%064x","podref":"namespace-%d/pod-%d","ifname":"net1"}`, i, i, i%50, i))
		if i <= ipam.MaxBatch+1 {
			removals = append(removals, fmt.Sprintf(`{"op":"remove","path":"/spec/allocations/%d"}`, i))
			additions = append(additions, fmt.Sprintf(`{"op":"add","path":"/spec/allocations/%d","value":{"id":"a","podref":"a/b"}}`, 20000+i))
		}
	}
	f.create("pool", `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool","metadata":{"namespace":"kube-system","name":"largest"},
		"spec":{"range":"10.64.0.0/16","allocations":{`+strings.Join(entries, ",")+`}}}`)
	const largest = "pool: kube-system/largest"
	patch := func(operations []string) string { return "[" + strings.Join(operations, ",") + "]" }
	release := []write{
		{"remove as many as a batch", "", "patch", largest, patch(removals[:ipam.MaxBatch])},
		{"remove one", "", "patch", largest, patch(removals[:1])},
		{"remove more than a batch", "writes", "patch", largest, patch(removals)},
		{"add one", "writes", "patch", largest, patch(additions[:1])},
	}
	restore := []write{
		{"add one", "", "patch", largest, patch(additions[:1])},
		{"add as many as a batch", "", "patch", "pool: kube-system/other", patch(additions[:ipam.MaxBatch])},
		{"add more than a batch", "writes", "patch", "pool: kube-system/other", patch(additions)},
		{"remove one", "writes", "patch", largest, patch(removals[:1])},
	}
	if testing.Short() {
		release, restore = release[:1], restore[:3]
	}
	f.each(reap.RunAccount, release)
	f.each(reap.RestoreAccount, restore)
	f.each(operator, []write{release[0], restore[0], restore[1]})
}

// blockSize is the size of Calico's largest block, a /20.
const blockSize = 4096

// The largest block costs less, full or nearly empty, and released as a whole or one by
// one. With -short only the largest one is tried, half full, with the writes that pass.
func TestEverySizeOfABlockIsNotTooMuchWork(t *testing.T) {
	f := newFixture(t)
	handles := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("k8s-pod-network.%064x", i)
		}
		return all
	}
	sizes := []int{512, 1024, blockSize}
	if testing.Short() {
		sizes = sizes[2:]
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			defer func(was *testing.T) { f.T = was }(f.T)
			f.T = t
			fill := []int{size, size / 2, 1}
			if testing.Short() {
				fill = fill[1:2]
			}
			for _, used := range fill {
				name := fmt.Sprintf("block-%d-%d", size, used)
				b := newBlock(size, handles(used)...)
				f.create("block", b.json(t, name))
				first := make([]int, min(used, ipam.MaxBatch))
				for i := range first {
					first[i] = i
				}
				twice, taken := b.free(first...), b.free(0)
				twice.Unallocated[len(twice.Unallocated)-1] = twice.Unallocated[0]
				taken.Allocations[size-1] = new(0)
				writes := func(by string, blocks ...blockSpec) (all []write) {
					for _, b := range blocks {
						all = append(all, write{fmt.Sprintf("%d of %d", used, size), by, "patch", "block: " + name, b.patch(t)})
					}
					return all
				}
				f.each(reap.RunAccount, writes("", b.free(first...)))
				if used < size {
					half := b.clone()
					for i := used; i < used+(size-used)/2; i++ {
						half = half.take(i, fmt.Sprint("new-", i))
					}
					half.Sequence = b.Sequence + 1
					f.each(reap.RestoreAccount, writes("", b.take(size-1, "new"), half))
					f.each(operator, writes("", b.free(first...), half))
				}
				if testing.Short() {
					continue
				}
				f.each(reap.RunAccount, writes("", b.free(0), b.free(used-1)))
				f.each(reap.RunAccount, writes("writes", twice, taken))
				if used < size {
					f.each(reap.RestoreAccount, writes("writes", b.free(0)))
				}
			}
		})
	}
}
