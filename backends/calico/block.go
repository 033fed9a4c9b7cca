package calico

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A block is an IPAMBlock as it was read: a range of addresses and their
// allocations. An ordinal is the offset of an address from the first of the range.
type block struct {
	object
	cidr netip.Prefix
	node string // Calico's name for the node that has the block; empty if none does

	allocations []*int            // by ordinal: an index into attributes; nil if the address is free
	unallocated []int             // the free ordinals; the plugin takes from the head
	attributes  []json.RawMessage // as stored
	readable    []attribute       // the same, decoded
	sequences   map[string]uint64 // by ordinal: the block's sequence number when it was allocated
	sequence    uint64            // counts the writes; begins with the time, above 2^53
	deleted     bool              // Calico has marked the block and will delete it
}

// readBlock decodes a block. It returns an error for a block that breaks an
// invariant of Calico's, because any edit would make it worse.
func readBlock(o object) (block, error) {
	b := block{object: o}
	var fields struct {
		CIDR        string            `json:"cidr"`
		Affinity    string            `json:"affinity"`
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
		return b, fmt.Errorf("cidr: %q is not a CIDR", fields.CIDR)
	}
	b.cidr = cidr
	if node, ok := strings.CutPrefix(fields.Affinity, affineNode); ok {
		b.node = node
	}
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

// affineNode is the prefix of the affinity of a node's block. A load balancer's has another prefix.
const affineNode = "host:"

// maxHostBits is the most host bits that readBlock accepts. Calico's largest
// block has 12 host bits (validation of spec.blockSize: /20 and /116).
const maxHostBits = 16

// A sizeError is a block that is larger than those of Calico. Calico makes one if an IPPool says so
// without its validation, and then can't use it (calico 5202).
type sizeError struct{ cidr netip.Prefix }

// Error names the range.
func (e *sizeError) Error() string {
	return fmt.Sprintf("cidr %s is larger than any block of Calico's", e.cidr)
}

// check returns an error for the first invariant that the block breaks.
func (b block) check() error {
	if b.cidr != b.cidr.Masked() {
		return fmt.Errorf("cidr %s does not begin at a range's first address", b.cidr)
	}
	hostBits := b.cidr.Addr().BitLen() - b.cidr.Bits()
	if hostBits > maxHostBits {
		return &sizeError{b.cidr}
	}
	if size := 1 << hostBits; len(b.allocations) != size {
		return fmt.Errorf("the block has %d allocations for %d addresses", len(b.allocations), size)
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
			return fmt.Errorf("attribute %d belongs to no address of the block", i)
		}
	}
	return nil
}

// ordinal returns the ordinal that is the key of an allocation.
func (b block) ordinal(key string) (int, error) {
	ordinal, err := strconv.Atoi(key)
	if err != nil || ordinal < 0 || ordinal >= len(b.allocations) {
		return -1, fmt.Errorf("block %s has no ordinal %q", b.cidr, key)
	}
	return ordinal, nil
}

// address returns the address of an ordinal.
func (b block) address(ordinal int) netip.Addr {
	ip := b.cidr.Addr().AsSlice()
	for i := len(ip) - 1; i >= 0 && ordinal > 0; i-- { // a range begins at a multiple of its size: nothing is carried
		ip[i] |= byte(ordinal)
		ordinal >>= 8
	}
	address, _ := netip.AddrFromSlice(ip)
	return address
}

// token returns the token of an allocation: a hash of its sequence number and its stored attribute,
// including both owners. Calico before 3.22.2 writes no sequence number. Then the attribute alone
// is enough if its handle names a sandbox, because no two sandboxes have the same handle. A handle
// <namespace>.<pod> of Calico v2 names a pod: with a static address, the attribute of its next
// sandbox has the same bytes. With neither a number nor a sandbox, the token is empty: nothing
// distinguishes the allocation from the address's next one.
func (b block) token(ordinal int) string {
	index := *b.allocations[ordinal]
	sequence, ok := b.sequences[strconv.Itoa(ordinal)]
	if a := b.readable[index]; !ok && sandboxOf(a.handle(), a.pod()) == "" {
		return ""
	}
	return tokenOf(sequence, b.attributes[index])
}

// tokenOf returns the token of an allocation with this number and attribute.
func tokenOf(sequence uint64, attribute []byte) string {
	const digits = 20 // of the largest number
	compact := bytes.NewBuffer(make([]byte, 0, digits+1+len(attribute)))
	compact.WriteString(strconv.FormatUint(sequence, 10) + " ")
	if err := json.Compact(compact, attribute); err != nil { // other writers may space it differently
		return ""
	}
	sum := sha256.Sum256(compact.Bytes())
	return string(sum[:])
}

// allocation returns the allocation of an ordinal.
func (b block) allocation(ordinal int) ipam.Allocation {
	a := b.readable[*b.allocations[ordinal]]
	r := ipam.Allocation{
		Key:      strconv.Itoa(ordinal),
		IP:       b.address(ordinal),
		Token:    b.token(ordinal),
		Group:    a.handle(),
		Foreign:  a.foreign(),
		Tunnel:   strings.HasSuffix(a.foreign(), "TunnelAddress"),
		Adoption: ipam.SandboxOwned,
		Owner: ipam.Owner{
			Pod:  a.pod(),
			Node: a.Active[attrNode],
		},
	}
	if b.deleted {
		r.Unreadable = "Calico is deleting the block"
	}
	if at, err := time.Parse(timestampLayout, a.Active[attrTimestamp]); err == nil {
		r.Created = at
	}
	// Attributes without a pod belong to another orchestrator, whose containers are not in
	// the census.
	if len(a.Active) == 0 || r.Owner.Pod.Name != "" {
		r.Owner.Sandbox = sandboxOf(a.handle(), r.Owner.Pod)
	}
	return r
}

// handleOf returns the ID of an ordinal's handle; empty if there is none.
func (b block) handleOf(ordinal int) string {
	index := b.allocations[ordinal]
	if index == nil {
		return ""
	}
	return b.readable[*index].handle()
}

// find returns the ordinal of a listed allocation, and -1 if its address is free.
// It returns an error that wraps ipam.ErrChanged if the ordinal has another
// allocation now, and ipam.ErrKept if the key is not an ordinal of the block.
func (b block) find(r ipam.Allocation) (int, error) {
	ordinal, err := b.ordinal(r.Key)
	if err != nil {
		return -1, fmt.Errorf("%w: %w", ipam.ErrKept, err)
	}
	if b.allocations[ordinal] == nil {
		return -1, nil
	}
	if token := b.token(ordinal); token == "" || token != r.Token {
		return -1, fmt.Errorf("%w: it is now %s", ipam.ErrChanged, b.attributes[*b.allocations[ordinal]])
	}
	return ordinal, nil
}
