package calico

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Record implements ipam.Backend. It reads handles before blocks. DEL writes the
// block first, so an allocation that is found after its handle was not found never
// had a handle.
func (b *Backend) Record(ctx context.Context, rs []ipam.Allocation) ([]json.RawMessage, error) {
	store, err := b.datastore(ctx)
	if err != nil {
		return nil, err
	}
	ids, inBlock := make(map[kind][]string), make(map[string][]int)
	for i, r := range rs {
		if r.Pool == emptyHandles {
			ids[handles] = append(ids[handles], r.Key)
			continue
		}
		if inBlock[r.Pool] = append(inBlock[r.Pool], i); len(inBlock[r.Pool]) == 1 {
			ids[blocks] = append(ids[blocks], r.Pool)
		}
		if r.Group != "" {
			ids[handles] = append(ids[handles], r.Group)
		}
	}
	storedHandles := make(map[string]object, len(ids[handles]))
	err = readAll(ctx, store, handles, ids[handles], func(o object) { storedHandles[o.name] = o })
	if err != nil {
		return nil, fmt.Errorf("read handles: %w", err)
	}
	records := make([]json.RawMessage, len(rs))
	var failed error
	for i, r := range rs {
		if r.Pool == emptyHandles {
			records[i], err = recordEmptyHandle(r, storedHandles[store.name(handles, r.Key)])
			failed = cmp.Or(failed, err)
		}
	}
	// No block is kept: together they take hundreds of megabytes in a large
	// cluster.
	err = readAll(ctx, store, blocks, ids[blocks], func(o object) {
		in, err := readBlock(o)
		if err != nil || in.deleted {
			return
		}
		for _, i := range inBlock[in.cidr.String()] {
			records[i], err = b.recordAllocation(rs[i], in, storedHandles[store.name(handles, rs[i].Group)])
			failed = cmp.Or(failed, err)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read blocks: %w", err)
	}
	return records, failed
}

// recordAllocation returns the record of a listed allocation, and caches its handle for
// the release. It returns nil if the block has another allocation by now, or if the
// record would not decode to the same bytes.
func (b *Backend) recordAllocation(r ipam.Allocation, in block, stored object) (json.RawMessage, error) {
	ordinal, err := in.find(r)
	if err != nil || ordinal < 0 {
		return nil, nil
	}
	rec := record{Attribute: string(in.attributes[*in.allocations[ordinal]])}
	if number, ok := in.sequences[strconv.Itoa(ordinal)]; ok {
		rec.Sequence = &number
	}
	if stored.raw != nil {
		h, err := readHandle(stored)
		if err != nil {
			return nil, nil
		}
		if h.id == r.Group { // otherwise it is a handle whose ID differs in case
			rec.Handle = &handleRecord{stored.name, string(stored.raw)}
			b.known.store(h)
		}
	}
	if !utf8.ValidString(rec.Attribute) || !utf8.Valid(stored.raw) {
		return nil, nil
	}
	return json.Marshal(rec)
}

// recordEmptyHandle returns the record of a listed handle without an address. It returns nil as
// recordAllocation does.
func recordEmptyHandle(r ipam.Allocation, stored object) (json.RawMessage, error) {
	h, err := readHandle(stored)
	if err != nil || h.id != r.Key || h.token() != r.Token || !utf8.Valid(stored.raw) {
		return nil, nil
	}
	return json.Marshal(handleRecord{stored.name, string(stored.raw)})
}

// mostReads is how many objects at most are read one by one. More are read with a list.
const mostReads = 200

// readAll reads blocks by CIDR, or handles by ID: one by one, or with a list of all objects of the
// kind. It calls do for one object after another that exists, and may call it again for an object
// that it reads again. If a single read fails, it lists instead, because only the list retries
// requests.
func readAll(ctx context.Context, store datastore, k kind, ids []string, do func(object)) error {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) <= mostReads && readEach(ctx, store, k, ids, do) == nil {
		return nil
	}
	names := make(map[string]bool, len(ids))
	for _, id := range ids {
		names[store.name(k, id)] = true
	}
	_, err := store.list(ctx, k, func(o object) any {
		if names[o.name] {
			do(o)
		}
		return nil
	})
	return err
}

// readEach reads the objects one by one, a few at a time.
func readEach(ctx context.Context, store datastore, k kind, ids []string, do func(object)) error {
	objects := make([]object, len(ids))
	errs := each(len(ids), func(i int) (err error) {
		objects[i], err = store.get(ctx, k, ids[i])
		return err
	})
	for i, err := range errs {
		switch {
		case err == nil:
			do(objects[i])
		case !errors.Is(err, errGone):
			return err
		}
	}
	return nil
}

// A record is an allocation as its block stored it. The stored parts are strings:
// a journal may space JSON differently.
type record struct {
	Attribute string        `json:"attribute"`
	Sequence  *uint64       `json:"sequence,omitzero"`
	Handle    *handleRecord `json:"handle,omitzero"` // absent if the allocation had no handle
}

// A handleRecord is a handle as it was stored: the whole resource, or the value of
// a key. It is also the whole record of a handle without an address.
type handleRecord struct {
	Name   string `json:"name"` // the name of the resource, or the key in etcd
	Stored string `json:"stored"`
}

// A recordedAllocation is the decoded record of an allocation to be put back. Its
// parts agree with each other: readRecord checks that, since a journal may have
// been edited.
type recordedAllocation struct {
	record
	index     int // of the record in the call
	ordinal   int
	attribute attribute
	handle    handle // as it was recorded; zero if there was none
}

// id returns the ID of its handle, whether or not the handle existed; empty if it
// has none.
func (a recordedAllocation) id() string { return a.attribute.handle() }

// token returns the token that the allocation had.
func (a recordedAllocation) token() string {
	var sequence uint64
	if a.Sequence != nil {
		sequence = *a.Sequence
	}
	return tokenOf(sequence, []byte(a.Attribute))
}

// readRecord decodes the record of an allocation of the block. It returns an error
// that says what is wrong with a record that Record cannot have returned.
func readRecord(store datastore, of block, r ipam.Record) (recordedAllocation, error) {
	var a recordedAllocation
	err := decodeStrictly(r.Stored, &a.record)
	if err != nil {
		return a, err
	}
	if a.ordinal, err = of.ordinal(r.Key); err != nil {
		return a, err
	}
	if ip := of.address(a.ordinal); r.Pool != of.cidr.String() || r.IP != ip.String() || r.Key != strconv.Itoa(a.ordinal) {
		return a, fmt.Errorf("key %q of block %s is %s, and the record is of %q in pool %q", r.Key, of.cidr, ip, r.IP, r.Pool)
	}
	if !gjson.Parse(a.Attribute).IsObject() {
		return a, errors.New("its attribute is not a JSON object")
	}
	if err := (object{raw: []byte(a.Attribute)}).unambiguous(); err != nil {
		return a, fmt.Errorf("attribute: %w", err)
	}
	if err := kube.Decode([]byte(a.Attribute), &a.attribute); err != nil {
		return a, fmt.Errorf("attribute: %w", err)
	}
	if owner := a.attribute.foreign(); owner != "" {
		return a, fmt.Errorf("its attribute is that of %s, and a run releases no such address", owner)
	}
	if a.Handle == nil {
		return a, nil
	}
	if a.handle, err = a.Handle.read(store); err == nil && a.handle.id != a.id() {
		err = fmt.Errorf("its attribute names handle %q, and its handle is %q", a.id(), a.handle.id)
	}
	return a, err
}

// read decodes a recorded handle as one to be created.
func (r handleRecord) read(store datastore) (handle, error) {
	o, err := store.newObject(handles, r.Name, []byte(r.Stored))
	if err != nil {
		return handle{}, fmt.Errorf("handle %q: %w", r.Name, err)
	}
	h, err := readHandle(o)
	if err != nil {
		return handle{}, fmt.Errorf("handle %q: %w", r.Name, err)
	}
	if name := store.name(handles, h.id); r.Name != name || o.name != name {
		return handle{}, fmt.Errorf("handle %q: the object is named %q, and the name for its ID is %q", r.Name, o.name, name)
	}
	return h, h.checkNew()
}

// sandboxHandle is the form <network>.<sandbox> of a handle's ID, as the CNI names both. Calico v2
// wrote <namespace>.<pod>.
var sandboxHandle = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*[.][a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// checkNew returns an error unless Calico could have written the handle for a pod, in blocks of its
// own sizes. A key that is no CIDR would make each calico-ipam DEL of the pod panic, and a handle
// of a node's tunnel would be taken for the tunnel's.
func (h handle) checkNew() error {
	if owner := foreignHandle(strings.ToLower(h.id)); owner != "" {
		return fmt.Errorf("handle %q is that of %s, and a run releases no such handle", h.id, owner)
	}
	if !sandboxHandle.MatchString(h.id) {
		return fmt.Errorf("handle %q has not the form <network>.<sandbox>", h.id)
	}
	for cidr := range h.counts {
		if cidr != cidr.Masked() || cidr.Addr().BitLen()-cidr.Bits() > maxCalicoBits {
			return fmt.Errorf("handle %q: block: %s is not the CIDR of a block", h.id, cidr)
		}
	}
	return nil
}

// maxCalicoBits is how many host bits Calico's largest block has (validation of spec.blockSize: /20
// and /116).
const maxCalicoBits = 12

// onlyIn returns the handle with n addresses in one block and none in any other,
// in the form to be stored.
func (h handle) onlyIn(cidr netip.Prefix, n int) (handle, error) {
	only := h
	only.counts = make(map[netip.Prefix]int)
	if err := only.set("block", []byte("{}")); err != nil {
		return handle{}, err
	}
	if h.deleted {
		if err := only.set("deleted", []byte("false")); err != nil {
			return handle{}, err
		}
		only.deleted = false
	}
	return only.withCount(cidr, n)
}

// decodeStrictly decodes a record. It returns an error if a field is unknown or
// appears twice.
func decodeStrictly(data []byte, into any) error {
	wrong, err := kjson.UnmarshalStrict(data, into)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}
