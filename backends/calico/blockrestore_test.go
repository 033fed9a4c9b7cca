package calico

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"
)

// allocationsOf returns the records of a block's ordinals.
func allocationsOf(b block, ordinals []int) []recordedAllocation {
	var all []recordedAllocation
	for _, ordinal := range ordinals {
		index := *b.allocations[ordinal]
		a := recordedAllocation{
			ordinal:   ordinal,
			record:    record{Attribute: string(b.attributes[index])},
			attribute: b.readable[index],
		}
		if number, ok := b.sequences[strconv.Itoa(ordinal)]; ok {
			a.Sequence = &number
		}
		all = append(all, a)
	}
	return all
}

// TestBlockRestore compares the stored form byte for byte.
func TestBlockRestore(t *testing.T) {
	const (
		webZero = `{"handle_id":"net.a","secondary":{"namespace":"default","node":"node-1","pod":"web-0"}}`
		webOne  = `{"handle_id":"net.b","secondary":{"namespace":"default","node":"node-1","pod":"web-1"}}`
		other   = `{"handle_id":"net.c"}`
	)
	now := func(allocations, attributes, sequences, unallocated string) string {
		return `{"affinity":"host:node-1","allocations":` + allocations + `,"attributes":` + attributes +
			`,"cidr":"10.0.0.0/30","deleted":false,"sequenceNumber":SEQ,"sequenceNumberForAllocation":` + sequences +
			`,"strictAffinity":false,"unallocated":` + unallocated + `}`
	}
	numbers := `{"0":1800000000000000003,"2":1800000000000000004,"3":1800000000000000005}`
	for _, tt := range []struct {
		name     string
		now      string // the stored form at the restore; threeOfFour was recorded
		ordinals []int  // the ordinals to put back
		want     string
	}{
		{"one beside a new owner", now(`[null,0,null,null]`, `["C"]`, `{"1":1800000000000000009}`, `[0,2,3]`), []int{0},
			now(`[1,0,null,null]`, `["C","A"]`, `{"1":1800000000000000009,"0":1800000000000000003}`, `[2,3]`)},
		{"a sequence number that another writer left behind", now(`[0,null,0,null]`, `["A"]`, `{"0":1800000000000000003,"2":1800000000000000004,"3":7}`, `[3,1]`), []int{3},
			now(`[0,null,0,1]`, `["A","B"]`, numbers, `[1]`)},
		{"sequence numbers that are gone", now(`[null,null,null,0]`, `["B"]`, `null`, `[1,0,2]`), []int{2},
			now(`[null,null,1,0]`, `["B","A"]`, `{"2":1800000000000000004}`, `[1,0]`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, s shape) {
				whole := func(text, sequence string) string {
					return strings.NewReplacer(`"A"`, webZero, `"B"`, webOne, `"C"`, other, "SEQ", sequence).Replace(text)
				}
				before := mustRead(t, s.stored(blocks, "10.0.0.0/30", whole(tt.now, "1800000000000000020")))
				was, understood := string(before.raw), describe(before)
				recorded := mustRead(t, s.stored(blocks, "10.0.0.0/30", threeOfFour))
				b, err := before.restore(allocationsOf(recorded, tt.ordinals))
				if err != nil {
					t.Fatal(err)
				}
				want := s.stored(blocks, "10.0.0.0/30", whole(tt.want, "1800000000000000021"))
				if diff := cmp.Diff(string(want.raw), string(b.raw)); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
				if describe(before) != understood || string(before.raw) != was {
					t.Errorf("the block that was read changed to %s", describe(before))
				}
			})
		})
	}
}

// Calico before 3.22.2 wrote no sequence numbers. A number that another writer left
// behind must not be taken for the record's.
func TestBlockRestoreWithoutASequenceNumber(t *testing.T) {
	inShapes(t, func(t *testing.T, s shape) {
		recorded := mustRead(t, s.stored(blocks, "10.0.0.0/31",
			`{"cidr":"10.0.0.0/31","allocations":[0,null],"unallocated":[1],"attributes":[{"handle_id":"net.a"}]}`))
		now := mustRead(t, s.stored(blocks, "10.0.0.0/31",
			`{"cidr":"10.0.0.0/31","allocations":[null,null],"unallocated":[1,0],"attributes":[],"sequenceNumber":8,"sequenceNumberForAllocation":{"0":7,"1":6}}`))
		b, err := now.restore(allocationsOf(recorded, []int{0}))
		if err != nil || b.token(0) != recorded.token(0) || len(b.sequences) != 1 {
			t.Errorf("restore = %s, %v", describe(b), err)
		}
	})
}

// meaning decodes a block without the code under test. It replaces the index of each address by the
// bytes of its attribute.
func meaning(t *rapid.T, b block) map[string]any {
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(b.value()))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	allocations, attributes := all["allocations"].([]any), gjson.GetBytes(b.value(), "attributes").Array()
	for ordinal, index := range allocations {
		if n, ok := index.(json.Number); ok {
			i, err := strconv.Atoi(n.String())
			if err != nil {
				t.Fatal(err)
			}
			allocations[ordinal] = attributes[i].Raw
		}
	}
	delete(all, "attributes")
	return all
}

// others returns the bytes of a stored block that neither a release nor a restore writes.
func others(b block) string {
	raw := string(b.raw)
	for _, field := range []string{"allocations", "unallocated", "attributes", "sequenceNumber", "sequenceNumberForAllocation"} {
		value := gjson.Get(raw, b.path(field))
		raw = raw[:value.Index] + "0" + raw[value.Index+len(value.Raw):]
	}
	return raw
}

// numberOf returns a number as meaning has it.
func numberOf(n uint64) json.Number { return json.Number(strconv.FormatUint(n, 10)) }

// A release removes the chosen allocations from any block, and changes nothing else. If they are
// put back, in any order and in several parts, the block is what it was, except for the number of
// writes. Otherwise, a release would damage what belongs to others (promises 6 and 10).
func TestReleaseAndRestoreOfAnyBlock(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, rapid.MakeCheck(func(t *rapid.T) {
			cidr, value := drawBlock(t)
			before, err := readBlock(s.stored(blocks, cidr, value))
			if err != nil {
				t.Fatalf("the drawn block cannot be read: %v\n%s", err, value)
			}
			var chosen []int
			for ordinal, index := range before.allocations {
				if index != nil && rapid.Bool().Draw(t, "release") {
					chosen = append(chosen, ordinal)
				}
			}
			now, err := before.release(chosen)
			if err != nil {
				t.Fatal(err)
			}
			want := meaning(t, before)
			want["sequenceNumber"] = numberOf(before.sequence + 1)
			for _, ordinal := range chosen {
				want["allocations"].([]any)[ordinal] = nil
				want["unallocated"] = append(want["unallocated"].([]any), numberOf(uint64(ordinal)))
				delete(want["sequenceNumberForAllocation"].(map[string]any), strconv.Itoa(ordinal))
			}
			if diff := cmp.Diff(want, meaning(t, now)); diff != "" {
				t.Fatalf("after the release of %v (-want +got):\n%s", chosen, diff)
			}
			if diff := cmp.Diff(others(before), others(now)); diff != "" {
				t.Fatalf("other bytes after the release of %v (-want +got):\n%s", chosen, diff)
			}
			if len(chosen) == 0 {
				return
			}
			parts := 0
			for left := rapid.Permutation(chosen).Draw(t, "order"); len(left) > 0; parts++ {
				n := rapid.IntRange(1, len(left)).Draw(t, "part")
				if now, err = now.restore(allocationsOf(before, left[:n])); err != nil {
					t.Fatalf("restore %v into\n%s: %v", left[:n], now.raw, err)
				}
				left = left[n:]
			}
			want = meaning(t, before)
			want["sequenceNumber"] = numberOf(before.sequence + 1 + uint64(parts))
			if diff := cmp.Diff(want, meaning(t, now)); diff != "" {
				t.Fatalf("after the restore of %v in %d parts (-want +got):\n%s", chosen, parts, diff)
			}
			if diff := cmp.Diff(others(before), others(now)); diff != "" {
				t.Fatalf("other bytes after the restore of %v (-want +got):\n%s", chosen, diff)
			}
		}))
	}
}
