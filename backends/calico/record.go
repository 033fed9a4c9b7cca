package calico

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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
	objects, errs := make([]object, len(ids)), make([]error, len(ids))
	each(len(ids), func(i int) { objects[i], errs[i] = store.get(ctx, k, ids[i]) })
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
