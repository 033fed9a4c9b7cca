package calico

import (
	"testing"

	"pgregory.net/rapid"
)

func TestReleaseOfAnyBlock(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, rapid.MakeCheck(func(t *rapid.T) {
			cidr, value := drawBlock(t)
			o := s.stored(blocks, cidr, value)
			before, err := readBlock(o)
			if err == nil {
				err = checkBlock(o)
			}
			if err != nil {
				t.Fatalf("the drawn block cannot be read: %v\n%s", err, value)
			}
			var chosen []int
			for ordinal, index := range before.allocations {
				if index != nil && rapid.Bool().Draw(t, "release") {
					chosen = append(chosen, ordinal)
				}
			}
			after, err := before.release(chosen)
			if err == nil {
				err = checkRelease(o, after.object, chosen)
			}
			if err != nil {
				t.Fatalf("release %v from\n%s: %v", chosen, o.raw, err)
			}
		}))
	}
}

// A block that readBlock accepts is listed completely. If it can be edited, the
// result passes checkRelease and is decoded to the same values.
func FuzzBlock(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte, resource bool, choice uint64) {
		o := object{kind: blocks, raw: data}
		if resource {
			var err error
			if o, err = readObject(blocks, data); err != nil {
				return
			}
		}
		before, err := readBlock(o)
		if err != nil {
			return
		}
		l := listingOf([]object{o}, nil, nil)
		if len(l.finish(l.blocks[0]).Allocations)+len(before.unallocated) != len(before.allocations) {
			t.Error("the listing lacks an allocation")
		}
		var chosen []int
		for ordinal, index := range before.allocations {
			if index != nil && choice>>(ordinal%64)&1 == 1 {
				chosen = append(chosen, ordinal)
			}
		}
		after, err := before.release(chosen)
		if err != nil {
			return
		}
		if err := checkRelease(o, after.object, chosen); err != nil {
			t.Errorf("release %v: %v", chosen, err)
		}
		if again := mustRead(t, after.object); !again.equal(after) {
			t.Errorf("it is read as %s, want %s", describe(again), describe(after))
		}
	})
}
