package calico

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Free releases ordinals of a decoded block as it is due, and returns the IDs of their
// handles: allocations, queue and attributes change as Calico would change them, the
// ordinals' own numbers go, and the number of writes goes up. It shares no code with what
// it judges. Numbers are json.Number.
func Free(b map[string]any, ordinals []int) (ids []string) {
	allocations, attributes := b["allocations"].([]any), b["attributes"].([]any)
	sequences, _ := b["sequenceNumberForAllocation"].(map[string]any)
	queue, _ := b["unallocated"].([]any)
	slices.Sort(ordinals)
	for _, ordinal := range ordinals {
		attribute := attributes[integer(allocations[ordinal])].(map[string]any)
		if id, _ := attribute["handle_id"].(string); id != "" {
			ids = append(ids, strings.Split(id, "\r")[0])
		}
		allocations[ordinal] = nil
		queue = append(queue, json.Number(strconv.Itoa(ordinal)))
		delete(sequences, strconv.Itoa(ordinal))
	}
	left, moved := []any{}, map[int]json.Number{}
	for _, index := range allocations {
		if index != nil {
			moved[integer(index)] = "" // it stays
		}
	}
	for i, attribute := range attributes {
		if _, stays := moved[i]; stays {
			moved[i] = json.Number(strconv.Itoa(len(left)))
			left = append(left, attribute)
		}
	}
	for ordinal, index := range allocations {
		if index != nil {
			allocations[ordinal] = moved[integer(index)]
		}
	}
	b["attributes"], b["unallocated"] = left, queue
	b["sequenceNumber"] = json.Number(strconv.FormatUint(uint64(integer(b["sequenceNumber"]))+1, 10))
	return ids
}

// integer is a number, and 0 if there is none.
func integer(n any) int {
	if n == nil {
		return 0
	}
	i, err := strconv.Atoi(fmt.Sprint(n))
	if err != nil {
		panic(err)
	}
	return i
}
