package calico

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRelease compares the stored form byte for byte. TestReleaseAndRestoreOfAnyBlock has the blocks
// that have all fields.
func TestRelease(t *testing.T) {
	for _, tt := range []struct {
		name     string
		value    string
		ordinals []int
		want     string
	}{
		{"without sequence numbers, as before Calico had them",
			`{"cidr":"10.0.0.0/31","allocations":[0,1],"unallocated":[],"attributes":[{"handle_id":"net.a"},{"handle_id":"net.b"}]}`, []int{0},
			`{"cidr":"10.0.0.0/31","allocations":[null,0],"unallocated":[0],"attributes":[{"handle_id":"net.b"}],"sequenceNumber":1}`},
		{"without a list of free ones",
			`{"cidr":"10.0.0.0/31","allocations":[0,0],"attributes":[{"handle_id":"net.a"}],"sequenceNumber":4}`, []int{1},
			`{"cidr":"10.0.0.0/31","allocations":[0,null],"attributes":[{"handle_id":"net.a"}],"sequenceNumber":5,"unallocated":[1]}`},
		{"with null in empty fields",
			`{"cidr":"10.0.0.0/32","affinity":null,"allocations":[0],"unallocated":null,"attributes":[null],"sequenceNumber":null,"sequenceNumberForAllocation":null}`, []int{0},
			`{"cidr":"10.0.0.0/32","affinity":null,"allocations":[null],"unallocated":[0],"attributes":[],"sequenceNumber":1,"sequenceNumberForAllocation":null}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, s shape) {
				stored := s.stored(blocks, "10.0.0.0/30", tt.value)
				before := mustRead(t, stored)
				understood := describe(before)
				b, err := before.release(tt.ordinals)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(s.stored(blocks, "10.0.0.0/30", tt.want).raw), string(b.raw)); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
				if again := mustRead(t, b.object); !again.equal(b) || describe(again) != describe(b) {
					t.Errorf("it is read as %s, want %s", describe(again), describe(b))
				}
				if b.name != before.name || b.uid != before.uid || b.revision != before.revision || b.kind != blocks {
					t.Errorf("it is %+v now, and was %+v", b.object, before.object)
				}
				if describe(before) != understood || string(before.raw) != string(stored.raw) {
					t.Errorf("the block that was read changed to %s", describe(before))
				}
			})
		})
	}
}

// Readers differ in which of the two keys they take.
func TestBlocksWithDuplicateKeysAreNotEdited(t *testing.T) {
	for name, edit := range map[string][2]string{
		"allocations":                {`"cidr":`, `"allocations":[0,null,0,1],"cidr":`},
		"attributes":                 {`"cidr":`, `"attributes":[{"handle_id":"x"},{}],"cidr":`},
		"sequence number":            {`"cidr":`, `"sequenceNumber":7,"cidr":`},
		"sequence number of it":      {`{"0":`, `{"0":7,"0":`},
		"sequence number of another": {`{"0":`, `{"3":7,"0":`},
		"handle":                     {`"handle_id":"net.a"`, `"handle_id":"net.c","handle_id":"net.a"`},
		"another field":              {`"cidr":`, `"affinity":"host:node-2","cidr":`},
		"in another spelling":        {`"cidr":`, `"\u0061llocations":[0,null,0,1],"cidr":`},
	} {
		t.Run(name, func(t *testing.T) {
			value := strings.Replace(threeOfFour, edit[0], edit[1], 1)
			inShapes(t, func(t *testing.T, s shape) { refuses(t, s.stored(blocks, "10.0.0.0/30", value)) })
		})
	}
	for name, edit := range map[string][2]string{
		"the whole block":         {`"spec":`, `"spec":` + strings.Replace(threeOfFour, "10.0.0.0", "10.0.0.4", 1) + `,"spec":`},
		"a field of the metadata": {`"name":`, `"name":"x","name":`},
	} {
		t.Run(name, func(t *testing.T) {
			o := shapes[0].stored(blocks, "10.0.0.0/30", threeOfFour)
			o.raw = []byte(strings.Replace(string(o.raw), edit[0], edit[1], 1))
			refuses(t, o)
		})
	}
}

// refuses fails the test unless every release from the block returns an error.
func refuses(t *testing.T, o object) {
	t.Helper()
	b, err := readBlock(o)
	if err != nil {
		return
	}
	for _, ordinals := range [][]int{{0}, {2}, {3}, {0, 2}, {0, 2, 3}} {
		ordinals = slices.DeleteFunc(ordinals, func(n int) bool { return b.allocations[n] == nil })
		if after, err := b.release(ordinals); err == nil {
			t.Errorf("release %v stores %s", ordinals, describe(after))
		}
	}
}

// The plugin would give an ordinal that is unallocated twice to two pods.
func TestDuplicateOrdinalsAreNotReleased(t *testing.T) {
	b := mustRead(t, shapes[0].stored(blocks, "10.0.0.0/30", threeOfFour))
	if after, err := b.release([]int{3, 3}); err == nil {
		t.Errorf("release = %s, want an error", describe(after))
	}
	if after, err := b.release([]int{1}); err == nil {
		t.Errorf("release of a free ordinal = %s, want an error", describe(after))
	}
}
