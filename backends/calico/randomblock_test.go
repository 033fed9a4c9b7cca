package calico

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// A pair is a key and a value, both as JSON.
type pair [2]string

// Unusual but valid JSON strings and values.
var (
	oddTexts  = []string{`"n\u0065t"`, `"a\/b\\\"}"`, `"{\":,[]}"`, `"é😀\ud83d\ude00"`, `""`, `" , "`, `"unallocated"`}
	oddValues = append([]string{`null`, `0`, `12345678901234567890`, `9007199254740993`, `-0.10e-7`, `[ ]`, `{"allocations":[7],"x":{"y":[1,{}]}}`}, oddTexts...)
)

// drawBlock draws a valid block, as any program might write it: with its keys in
// any order, with spaces, and with unknown fields.
func drawBlock(t *rapid.T) (cidr, value string) {
	hostBits := rapid.IntRange(0, 4).Draw(t, "host bits")
	base := rapid.SampledFrom([]string{"10.0.0.0", "255.255.255.240", "fd80:24e2::", "ffff::fff0"}).Draw(t, "base")
	addr := netip.MustParseAddr(base)
	cidr = netip.PrefixFrom(addr, addr.BitLen()-hostBits).String()

	var allocations, unallocated, attributes []string
	var sequences []pair
	free := []int{}
	owners := rapid.IntRange(1, 4).Draw(t, "owners")
	index := make(map[int]int) // the index of each owner's attribute
	for ordinal := range 1 << hostBits {
		if rapid.IntRange(0, 2).Draw(t, "sequence number") > 0 { // a free ordinal may have one, too
			number := strconv.FormatUint(rapid.Uint64().Draw(t, "number"), 10)
			sequences = append(sequences, pair{fmt.Sprintf("%q", strconv.Itoa(ordinal)), number})
		}
		if rapid.IntRange(0, 3).Draw(t, "free") == 0 {
			allocations, free = append(allocations, "null"), append(free, ordinal)
			continue
		}
		owner := rapid.IntRange(0, owners-1).Draw(t, "owner")
		if _, ok := index[owner]; !ok {
			index[owner] = len(attributes)
			attributes = append(attributes, drawAttribute(t, owner))
		}
		allocations = append(allocations, strconv.Itoa(index[owner]))
	}
	if len(free) > 0 {
		for _, ordinal := range rapid.Permutation(free).Draw(t, "order of the free ones") {
			unallocated = append(unallocated, strconv.Itoa(ordinal))
		}
	}
	for _, key := range oddTexts[:rapid.IntRange(0, 3).Draw(t, "odd keys")] {
		sequences = append(sequences, pair{key, "7"})
	}
	pairs := []pair{
		{`"cidr"`, fmt.Sprintf("%q", cidr)},
		{`"allocations"`, drawList(t, allocations)},
		{`"unallocated"`, drawList(t, unallocated)},
		{`"attributes"`, drawList(t, attributes)},
		{`"sequenceNumber"`, strconv.FormatUint(rapid.Uint64Max(1<<64-40).Draw(t, "sequence"), 10)},
		{`"sequenceNumberForAllocation"`, drawObject(t, sequences)},
	}
	return cidr, drawObject(t, append(pairs, drawOdd(t)...))
}

// drawAttribute draws the attribute of an owner.
func drawAttribute(t *rapid.T, owner int) string {
	pairs := drawOdd(t)
	if rapid.Bool().Draw(t, "handle") {
		pairs = append(pairs, pair{`"handle_id"`, fmt.Sprintf(`"n\u0065t.%d"`, owner)})
	}
	if rapid.Bool().Draw(t, "pod") {
		pairs = append(pairs, pair{`"secondary"`, drawObject(t, []pair{{`"pod"`, `"web-0"`}, {`"namespace"`, `"default"`}})})
	}
	return drawObject(t, pairs)
}

// drawOdd draws unknown fields.
func drawOdd(t *rapid.T) []pair {
	var pairs []pair
	for _, key := range oddTexts[:rapid.IntRange(0, 2).Draw(t, "unknown fields")] {
		pairs = append(pairs, pair{key, rapid.SampledFrom(oddValues).Draw(t, "value")})
	}
	return pairs
}

func drawObject(t *rapid.T, pairs []pair) string {
	if len(pairs) == 0 {
		return "{" + drawSpace(t) + "}"
	}
	var items []string
	for _, p := range rapid.Permutation(pairs).Draw(t, "order") {
		items = append(items, p[0]+drawSpace(t)+":"+drawSpace(t)+p[1])
	}
	return "{" + drawItems(t, items) + "}"
}

func drawList(t *rapid.T, items []string) string { return "[" + drawItems(t, items) + "]" }

func drawItems(t *rapid.T, items []string) string {
	space := drawSpace(t)
	return space + strings.Join(items, space+","+drawSpace(t)) + space
}

func drawSpace(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r\n  "}).Draw(t, "space")
}
