package calico

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A handle is an IPAMHandle as it was read: in which blocks one owner has
// addresses, and how many. While an ADD is under way, or after one failed, it
// counts more addresses than the blocks have.
type handle struct {
	object
	id      string
	counts  map[netip.Prefix]int // the number of addresses, by block
	deleted bool                 // Calico has marked the handle and will delete it
}

// readHandle decodes a handle. In etcd, its ID is part of the key. It returns an
// error for a handle that cannot be edited safely.
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
			return h, fmt.Errorf("block: %q is not a CIDR", text)
		}
		if cidr.String() != text { // an edit would not find the key, and the block may be there twice
			return h, fmt.Errorf("block: %q is another spelling of %s", text, cidr)
		}
		h.counts[cidr] = n
	}
	if h.id == "" {
		return h, fmt.Errorf("the handle has no handleID")
	}
	return h, nil
}

// withCount returns the handle with n addresses in the block, in the form to be stored. If no
// address is left in any block, raw is nil: the handle is to be deleted.
func (h handle) withCount(cidr netip.Prefix, n int) (handle, error) {
	after := h
	after.counts = maps.Clone(h.counts)
	var err error
	if n > 0 {
		after.counts[cidr] = n
		err = after.set("block."+escape(cidr.String()), strconv.AppendInt(nil, int64(n), 10))
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
		return handle{}, fmt.Errorf("the edited handle %s decodes to other values; it was not written", h.id)
	}
	return after, nil
}

// token returns the token of a handle without an address: its UID and its revision.
func (h handle) token() string { return h.uid + "/" + h.revision }

// A handleCache holds handles by ID: those that a run has recorded and is about
// to release, as our own writes have left them since. It is safe for concurrent
// use.
type handleCache struct{ known sync.Map }

// find returns a cached handle.
func (c *handleCache) find(id string) (handle, bool) {
	cached, _ := c.known.Load(id)
	h, ok := cached.(handle)
	return h, ok
}

// store caches a handle that was read or written. One that we deleted leaves the cache.
func (c *handleCache) store(h handle) {
	if h.raw == nil {
		c.forget(h.id)
		return
	}
	c.known.Store(h.id, h)
}

// forget drops a handle, so that the next release reads it from the datastore.
func (c *handleCache) forget(id string) { c.known.Delete(id) }

// fetchHandle reads a handle. It returns errGone if there is none, and an error
// that wraps errUnreadable if it cannot be decoded.
func fetchHandle(ctx context.Context, store datastore, id string) (handle, error) {
	o, err := store.get(ctx, handles, id)
	if err != nil {
		return handle{}, err
	}
	h, err := readHandle(o)
	if err != nil {
		return handle{}, fmt.Errorf("%w: handle %s: %w", errUnreadable, id, err)
	}
	if h.id != id {
		return handle{}, errGone // it is a handle whose ID differs in case
	}
	return h, nil
}

// errUnreadable is the error for a handle that cannot be decoded or edited.
var errUnreadable = errors.New("the handle cannot be edited")
