package kube_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// What is kept stays as it was, whatever is kept after it, or changed beside it.
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
			_ = append(kept, -1)
			keptValues = append(keptValues, kept)
			text := strings.Repeat(string(rune('a'+i%26)), rapid.SampledFrom([]int{0, 1, 200, 9000, 32 << 10, 40 << 10}).Draw(t, "bytes"))
			keptTexts, wantTexts = append(keptTexts, texts.Keep(text)), append(wantTexts, text)
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

// Small values take no more memory than one block after the other.
func TestSlabAllocatesBlocks(t *testing.T) {
	var texts kube.TextSlab
	var values kube.Slab[[4]int64]
	if n := testing.AllocsPerRun(10, func() {
		for range 1000 {
			_, _ = texts.Keep("0123456789abcdef0123456789abcdef"), values.Keep([4]int64{1})
		}
	}); n > 5 {
		t.Errorf("%v blocks for 1,000 texts and 1,000 values, want one of each", n)
	}
}

func TestNilSlabKeepsEachAlone(t *testing.T) {
	if got := (*kube.TextSlab)(nil).Keep("a"); got != "a" {
		t.Errorf("%q", got)
	}
	equal(t, "values", (*kube.Slab[int])(nil).Keep(1, 2), []int{1, 2})
}
