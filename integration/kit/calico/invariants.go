package calico

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strconv"
)

// A block has the fields of a block that the invariants cover, in either store.
type block struct {
	CIDR        netip.Prefix      `json:"cidr"`
	Allocations []*json.Number    `json:"allocations"`
	Unallocated []json.Number     `json:"unallocated"`
	Attributes  []json.RawMessage `json:"attributes"`
}

// Invariants returns the first thing wrong with the content of a block, or nil. It shares no code
// with what it judges.
//
// A block has as many allocations as addresses. Each is free or names an attribute, and each
// attribute is named. Each free one is in unallocated once, and nothing else is.
func Invariants(content string) error {
	decoder := json.NewDecoder(bytes.NewBufferString(content))
	decoder.UseNumber()
	var b block
	if err := decoder.Decode(&b); err != nil {
		return fmt.Errorf("decode block: %w", err)
	}
	if !b.CIDR.IsValid() || b.CIDR != b.CIDR.Masked() {
		return fmt.Errorf("cidr %s is not that of a block", b.CIDR)
	}
	if size := float64(len(b.Allocations)); math.Log2(size) != float64(b.CIDR.Addr().BitLen()-b.CIDR.Bits()) {
		return fmt.Errorf("block %s has %v allocations", b.CIDR, size)
	}
	free, used := map[string]int{}, map[string]bool{}
	for _, ordinal := range b.Unallocated {
		free[ordinal.String()]++
	}
	for ordinal, index := range b.Allocations {
		key := strconv.Itoa(ordinal)
		if n := free[key]; (index == nil) != (n == 1) || n > 1 {
			return fmt.Errorf("block %s: ordinal %d has attribute %v, and is unallocated %d times", b.CIDR, ordinal, index, n)
		}
		delete(free, key)
		if index != nil {
			used[index.String()] = true
		}
	}
	for index := range b.Attributes {
		if key := strconv.Itoa(index); !used[key] {
			return fmt.Errorf("block %s: attribute %d is nobody's", b.CIDR, index)
		}
	}
	if len(free) > 0 || len(used) != len(b.Attributes) {
		return fmt.Errorf("block %s: ordinals %v are unallocated and attributes %v are used, and there are none such", b.CIDR, free, used)
	}
	return nil
}
