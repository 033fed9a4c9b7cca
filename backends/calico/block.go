package calico

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"strconv"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A block is an IPAMBlock as it was read: a range of addresses, and who has
// them. Ordinals count addresses from the first of the range.
type block struct {
	object
	cidr netip.Prefix

	allocations []*int            // by ordinal: an index into attributes; nil where it is free
	unallocated []int             // the free ordinals; the plugin takes from the head
	attributes  []json.RawMessage // as they are stored
	readable    []attribute       // the same, decoded
	sequences   map[string]uint64 // by ordinal: the block's sequence number when it was allocated
	sequence    uint64            // counts the writes; begins with the time, above 2^53
	deleted     bool              // half of a deletion by Calico
}

// An attribute says to whom addresses are allocated; several may share it
// (AllocationAttribute in libcalico-go).
type attribute struct {
	Handle    *string           `json:"handle_id"`
	Active    map[string]string `json:"secondary"`
	Alternate map[string]string `json:"alternateOwnerAttrs"`

	// Since when the address has been free, and must rest before it is given
	// away again. Whatever it is, the entry is nobody's.
	Released json.RawMessage `json:"releasedAt"`
}

// readBlock understands a block, and refuses one that breaks the invariants
// which Calico relies on: whoever writes such a block makes it worse.
func readBlock(o object) (block, error) {
	b := block{object: o}
	var fields struct {
		CIDR        string            `json:"cidr"`
		Allocations []*int            `json:"allocations"`
		Unallocated []int             `json:"unallocated"`
		Attributes  []json.RawMessage `json:"attributes"`
		Sequence    uint64            `json:"sequenceNumber"`
		Sequences   map[string]uint64 `json:"sequenceNumberForAllocation"`
		Deleted     bool              `json:"deleted"`
	}
	if err := kube.Decode(o.value(), &fields); err != nil {
		return b, fmt.Errorf("decode: %w", err)
	}
	cidr, err := netip.ParsePrefix(fields.CIDR)
	if err != nil {
		return b, fmt.Errorf("cidr: %w", err)
	}
	b.cidr = cidr
	b.allocations, b.unallocated, b.attributes = fields.Allocations, fields.Unallocated, fields.Attributes
	b.sequence, b.sequences, b.deleted = fields.Sequence, fields.Sequences, fields.Deleted
	b.readable = make([]attribute, len(b.attributes))
	for i, raw := range b.attributes {
		if err := kube.Decode(raw, &b.readable[i]); err != nil {
			return b, fmt.Errorf("attribute %d: %w", i, err)
		}
	}
	return b, b.check()
}

// maxHostBits bounds the blocks that are believed. Calico's largest has 12
// (validation of spec.blockSize, /20 and /116).
const maxHostBits = 16

// check returns what is wrong with the block.
func (b block) check() error {
	if b.cidr != b.cidr.Masked() {
		return fmt.Errorf("cidr %s is not the beginning of a range", b.cidr)
	}
	hostBits := b.cidr.Addr().BitLen() - b.cidr.Bits()
	if hostBits > maxHostBits {
		return fmt.Errorf("cidr %s is larger than any block", b.cidr)
	}
	if size := 1 << hostBits; len(b.allocations) != size {
		return fmt.Errorf("it has %d allocations, and %d addresses", len(b.allocations), size)
	}
	used := make([]bool, len(b.attributes))
	free := make([]bool, len(b.allocations))
	for _, ordinal := range b.unallocated {
		switch {
		case ordinal < 0 || ordinal >= len(free):
			return fmt.Errorf("unallocated ordinal %d is out of range", ordinal)
		case free[ordinal]:
			return fmt.Errorf("ordinal %d is unallocated twice", ordinal)
		}
		free[ordinal] = true
	}
	for ordinal, index := range b.allocations {
		switch {
		case index == nil && !free[ordinal]:
			return fmt.Errorf("ordinal %d is neither allocated nor unallocated", ordinal)
		case index == nil:
			continue
		case free[ordinal]:
			return fmt.Errorf("ordinal %d is both allocated and unallocated", ordinal)
		case *index < 0 || *index >= len(used):
			return fmt.Errorf("ordinal %d has attribute %d, which does not exist", ordinal, *index)
		}
		used[*index] = true
	}
	for i, ok := range used {
		if !ok {
			return fmt.Errorf("attribute %d belongs to no address", i)
		}
	}
	return nil
}

// address returns the address of an ordinal.
func (b block) address(ordinal int) netip.Addr {
	base := b.cidr.Addr().AsSlice()
	sum := new(big.Int).Add(new(big.Int).SetBytes(base), big.NewInt(int64(ordinal)))
	ip, _ := netip.AddrFromSlice(sum.FillBytes(base))
	return ip
}

// token is what an allocation is compared by: its attribute as it is stored,
// both owners included, and its sequence number. The attribute alone will do
// where the block was written by a Calico before 3.23, if it has a handle: that
// names one sandbox. Empty where nothing tells an allocation from the next.
func (b block) token(ordinal int) string {
	index := *b.allocations[ordinal]
	sequence, ok := b.sequences[strconv.Itoa(ordinal)]
	if handle := b.readable[index].Handle; !ok && (handle == nil || *handle == "") {
		return ""
	}
	return tokenOf(sequence, b.attributes[index])
}

// tokenOf is the token of an allocation that has one.
func tokenOf(sequence uint64, attribute []byte) string {
	var compact bytes.Buffer // somebody else may write it with other spaces
	if err := json.Compact(&compact, attribute); err != nil {
		return ""
	}
	return strconv.FormatUint(sequence, 10) + " " + compact.String()
}
