package calico

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A handle is an IPAMHandle as it was read: where the addresses are that one
// owner got. It counts more than there are where an ADD is under way or failed.
type handle struct {
	object
	id      string
	counts  map[netip.Prefix]int // by block
	deleted bool                 // half of a deletion by Calico
}

// readHandle understands a handle. In etcd the ID is a part of the key.
func readHandle(o object) (handle, error) {
	h := handle{object: o, id: strings.TrimPrefix(o.name, handlePrefix)}
	var fields struct {
		ID      string         `json:"handleID"`
		Counts  map[string]int `json:"block"`
		Deleted bool           `json:"deleted"`
	}
	if err := kube.Decode(o.value(), &fields); err != nil {
		return h, fmt.Errorf("decode: %w", err)
	}
	if o.root != "" {
		h.id = fields.ID
	}
	h.deleted = fields.Deleted
	h.counts = make(map[netip.Prefix]int, len(fields.Counts))
	for text, n := range fields.Counts {
		cidr, err := netip.ParsePrefix(text)
		if err != nil {
			return h, fmt.Errorf("block: %w", err)
		}
		if cidr.String() != text { // it may be there twice, and is not found by its name
			return h, fmt.Errorf("block: %q is another spelling of %s", text, cidr)
		}
		h.counts[cidr] = n
	}
	if h.id == "" {
		return h, fmt.Errorf("it has no handleID")
	}
	return h, nil
}

// without returns the handle with as many addresses less in the block, as it
// would be stored; raw is nil where no address is left and the handle has to go.
func (h handle) without(cidr netip.Prefix, freed int) (handle, error) {
	return h.counting(cidr, h.counts[cidr]-freed)
}

// counting is without, for as many addresses as the handle has in the block then.
func (h handle) counting(cidr netip.Prefix, n int) (handle, error) {
	after := h
	after.counts = maps.Clone(h.counts)
	var err error
	if n > 0 {
		after.counts[cidr] = n
		err = after.put("block", cidr.String(), strconv.AppendInt(nil, int64(n), 10))
	} else {
		delete(after.counts, cidr)
		err = after.unset("block." + escape(cidr.String()))
	}
	if len(after.counts) == 0 {
		after.raw = nil
		return after, nil
	}
	if err := errors.Join(err, h.unambiguous()); err != nil {
		return handle{}, fmt.Errorf("handle %s cannot be edited: %w", h.id, err)
	}
	written, err := readHandle(after.object)
	if err != nil {
		return handle{}, fmt.Errorf("handle %s cannot be edited: %w", h.id, err)
	}
	if !maps.Equal(written.counts, after.counts) {
		return handle{}, fmt.Errorf("handle %s cannot be edited: it would say something else", h.id)
	}
	return after, nil
}

// escape makes one component of a path of a key.
func escape(key string) string {
	return strings.NewReplacer(".", `\.`, ":", `\:`).Replace(key)
}

// token is what a handle is compared by.
func (h handle) token() string { return h.uid + "/" + h.revision }

// total returns how many addresses the handle counts.
func (h handle) total() int {
	n := 0
	for _, count := range h.counts {
		n += count
	}
	return n
}

// A register knows the handles that were listed, by ID, and the versions that our
// own writes made of them. It is safe for concurrent use.
type register struct {
	mu    sync.Mutex
	known map[string]handle
}

// fill replaces what is known. The stored form is kept of those only that may
// have to be edited; the others can only be deleted.
func (r *register) fill(all []handle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = make(map[string]handle, len(all))
	for _, h := range all {
		if h.total() <= 1 && len(h.counts) <= 1 {
			h.raw = nil
		}
		r.known[h.id] = h
	}
}

// find returns a handle as it is known.
func (r *register) find(id string) (handle, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.known[id]
	return h, ok
}

// note remembers what a handle is now; one that is gone is forgotten.
func (r *register) note(h handle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.raw == nil {
		delete(r.known, h.id)
		return
	}
	r.known[h.id] = h
}

// forget has the handle read anew.
func (r *register) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, id)
}
