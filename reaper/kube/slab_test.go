package kube_test

import (
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// What is kept stays as it was, also when more is kept after it, or changed beside it.
func TestSlabKeepsValuesAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var values kube.Slab[int]
		var texts kube.TextSlab
		var keptValues [][]int
		var keptTexts, wantTexts []string
		for i := range rapid.IntRange(1, 60).Draw(t, "kept") {
			n := rapid.SampledFrom([]int{0, 1, 2, 500, 3000, 9000}).Draw(t, "values")
			own := make([]int, n)
			for at := range own {
				own[at] = i
			}
			kept := values.Keep(own...)
			clear(own)
			keptValues = append(keptValues, kept)
			text := strings.Repeat(string(rune('a'+i%26)), rapid.SampledFrom([]int{0, 1, 200, 9000, 32 << 10, 40 << 10}).Draw(t, "bytes"))
			keptTexts, wantTexts = append(keptTexts, texts.Keep(text)), append(wantTexts, text)
		}
		for _, kept := range keptValues {
			_ = append(kept, -1)
		}
		for i, kept := range keptValues {
			for _, value := range kept {
				if value != i {
					t.Fatalf("a value of the %dth is %d", i, value)
				}
			}
		}
		for i, kept := range keptTexts {
			if kept != wantTexts[i] {
				t.Fatalf("the %dth text has %d bytes and is not the one that was kept", i, len(kept))
			}
		}
	})
}

// Small values stand in blocks, one after the other, and are not copied when a block is full.
func TestSlabAllocatesBlocks(t *testing.T) {
	var texts kube.TextSlab
	var values kube.Slab[[4]int64]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const kept, size = 100_000, 32 // bytes
	for range kept {
		_, _ = texts.Keep("0123456789abcdef0123456789abcdef"), values.Keep([4]int64{1})
	}
	runtime.ReadMemStats(&after)
	if blocks := after.Mallocs - before.Mallocs; blocks > 2*kept*size/(16<<10) {
		t.Errorf("%d blocks for %d texts and as many values of %d bytes", blocks, kept, size)
	}
	if all := after.TotalAlloc - before.TotalAlloc; all > 2.2*kept*size {
		t.Errorf("%d bytes for %d texts and as many values of %d bytes: they were copied", all, kept, size)
	}
}

func TestNilSlabKeepsEachAlone(t *testing.T) {
	if got := (*kube.TextSlab)(nil).Keep("a"); got != "a" {
		t.Errorf("%q", got)
	}
	equal(t, "values", (*kube.Slab[int])(nil).Keep(1, 2), []int{1, 2})
}
