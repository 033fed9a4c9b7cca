package calico

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
)

// A block is what of a block the invariants are about, in either store.
type block struct {
	CIDR        netip.Prefix      `json:"cidr"`
	Allocations []*json.Number    `json:"allocations"`
	Unallocated []json.Number     `json:"unallocated"`
	Attributes  []json.RawMessage `json:"attributes"`

	SequenceNumber              json.Number            `json:"sequenceNumber"`
	SequenceNumberForAllocation map[string]json.Number `json:"sequenceNumberForAllocation"`
}

// Invariants returns what is wrong with the content of a block, all of it
// joined, or nil. It shares no code with what it judges.
//
// A block has as many allocations as addresses. Each is free or names an
// attribute, and each attribute is named. What is free is in unallocated once,
// and nothing else is there. No address has a sequence number that the block
// has not had.
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
	hostBits := b.CIDR.Addr().BitLen() - b.CIDR.Bits()
	if hostBits > 16 {
		return fmt.Errorf("cidr %s is too large for a block", b.CIDR)
	}
	size := 1 << hostBits
	if len(b.Allocations) != size {
		return fmt.Errorf("block %s: %d allocations, want %d", b.CIDR, len(b.Allocations), size)
	}
	err := errors.Join(b.allocationsAgree(), b.unallocatedAgrees(size), b.sequenceAgrees(size))
	if err != nil {
		return fmt.Errorf("block %s: %w", b.CIDR, err)
	}
	return nil
}

// allocationsAgree checks that allocations and attributes name each other.
func (b *block) allocationsAgree() error {
	var errs []error
	used := make([]bool, len(b.Attributes))
	for ordinal, allocation := range b.Allocations {
		if allocation == nil {
			continue
		}
		index, err := strconv.Atoi(allocation.String())
		if err != nil || index < 0 || index >= len(used) {
			errs = append(errs, fmt.Errorf("ordinal %d has attribute %s of %d", ordinal, allocation, len(used)))
			continue
		}
		used[index] = true
	}
	for index, is := range used {
		if !is {
			errs = append(errs, fmt.Errorf("attribute %d is nobody's", index))
		}
	}
	return errors.Join(errs...)
}

// unallocatedAgrees checks that each ordinal is either allocated or, once,
// unallocated. That their numbers add up to the size follows.
func (b *block) unallocatedAgrees(size int) error {
	var errs []error
	times := make([]int, size)
	for _, number := range b.Unallocated {
		ordinal, err := strconv.Atoi(number.String())
		if err != nil || ordinal < 0 || ordinal >= size {
			errs = append(errs, fmt.Errorf("unallocated ordinal %s of %d", number, size))
			continue
		}
		times[ordinal]++
	}
	for ordinal, n := range times {
		switch allocated := b.Allocations[ordinal] != nil; {
		case allocated && n > 0:
			errs = append(errs, fmt.Errorf("ordinal %d is allocated and unallocated", ordinal))
		case !allocated && n != 1:
			errs = append(errs, fmt.Errorf("ordinal %d is free and %d times unallocated", ordinal, n))
		}
	}
	return errors.Join(errs...)
}

// sequenceAgrees checks the sequence numbers, which old blocks have not. One
// for an ordinal that is free is left behind by Calico itself.
func (b *block) sequenceAgrees(size int) error {
	var last uint64
	if b.SequenceNumber != "" {
		var err error
		if last, err = strconv.ParseUint(b.SequenceNumber.String(), 10, 64); err != nil {
			return fmt.Errorf("sequence number: %w", err)
		}
	}
	var errs []error
	for key, number := range b.SequenceNumberForAllocation {
		ordinal, err := strconv.Atoi(key)
		if err != nil || ordinal < 0 || ordinal >= size || strconv.Itoa(ordinal) != key {
			errs = append(errs, fmt.Errorf("sequence number of ordinal %s of %d", key, size))
		}
		if n, err := strconv.ParseUint(number.String(), 10, 64); err != nil || n >= last {
			errs = append(errs, fmt.Errorf("ordinal %s has sequence number %s, the block %d", key, number, last))
		}
	}
	return errors.Join(errs...)
}
