package calico

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
)

// A block has the fields of a block that say who has its addresses, in either store.
type block struct {
	CIDR        netip.Prefix `json:"cidr"`
	Allocations []*int       `json:"allocations"`
	Unallocated []int        `json:"unallocated"`
	Attributes  []struct {
		Handle string `json:"handle_id"`
	} `json:"attributes"`
}

// Invariants returns the first thing wrong with the content of a block, or nil. It shares no code
// with what it judges.
//
// A block has as many allocations as addresses. Each is free or names an attribute, and each
// attribute is named. Each free one is in unallocated once, and nothing else is.
func Invariants(content string) error {
	_, err := readBlock(content)
	return err
}

// readBlock decodes the content of a block. It is an error if the block breaks an invariant.
func readBlock(content string) (block, error) {
	var b block
	if err := json.Unmarshal([]byte(content), &b); err != nil {
		return b, fmt.Errorf("decode block: %w", err)
	}
	if !b.CIDR.IsValid() || b.CIDR != b.CIDR.Masked() {
		return b, fmt.Errorf("cidr %s is not that of a block", b.CIDR)
	}
	if size := float64(len(b.Allocations)); math.Log2(size) != float64(b.CIDR.Addr().BitLen()-b.CIDR.Bits()) {
		return b, fmt.Errorf("block %s has %v allocations", b.CIDR, size)
	}
	free, used := map[int]int{}, map[int]bool{}
	for _, ordinal := range b.Unallocated {
		free[ordinal]++
	}
	for ordinal, index := range b.Allocations {
		if n := free[ordinal]; (index == nil) != (n == 1) || n > 1 {
			return b, fmt.Errorf("block %s: ordinal %d is allocated: %v, and it is unallocated %d times", b.CIDR, ordinal, index != nil, n)
		}
		delete(free, ordinal)
		if index != nil {
			used[*index] = true
		}
	}
	for index := range b.Attributes {
		if !used[index] {
			return b, fmt.Errorf("block %s: attribute %d is nobody's", b.CIDR, index)
		}
	}
	if len(free) > 0 || len(used) != len(b.Attributes) {
		return b, fmt.Errorf("block %s: ordinals %v are unallocated and attributes %v are used, and there are none such", b.CIDR, free, used)
	}
	return b, nil
}
