package calico

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A record is an allocation as its block had it. What was stored is in strings:
// JSON would be written with other spaces by whoever keeps it.
type record struct {
	Ordinal   int           `json:"ordinal"`
	Index     int           `json:"index"` // of the attribute in the block
	Attribute string        `json:"attribute"`
	Sequence  *uint64       `json:"sequence,omitzero"`
	Handle    *handleRecord `json:"handle,omitzero"` // absent where there was none
}

// A handleRecord is a handle as it was stored: the whole resource, or the value of
// a key. It is all that there is to record of a handle without an address.
type handleRecord struct {
	Name   string `json:"name"` // of the resource, or the key
	Stored string `json:"stored"`
}

// Record implements reaper.Recorder. Handles are read before blocks: an allocation
// that is there although its handle was not has none, since DEL writes the block
// first.
func (b *Backend) Record(ctx context.Context, rs []reaper.Allocation) ([]json.RawMessage, error) {
	store, err := b.datastore(ctx)
	if err != nil {
		return nil, err
	}
	ids := make(map[kind][]string)
	for _, r := range rs {
		if r.Pool == emptyHandles {
			ids[handles] = append(ids[handles], r.Key)
			continue
		}
		ids[blocks] = append(ids[blocks], r.Pool)
		if r.Group != "" {
			ids[handles] = append(ids[handles], r.Group)
		}
	}
	storedHandles, err := b.readAll(ctx, store, handles, ids[handles])
	if err != nil {
		return nil, fmt.Errorf("read handles: %w", err)
	}
	storedBlocks, err := b.readAll(ctx, store, blocks, ids[blocks])
	if err != nil {
		return nil, fmt.Errorf("read blocks: %w", err)
	}
	found := make(map[string]block, len(storedBlocks))
	for _, o := range storedBlocks {
		if b, err := readBlock(o); err == nil && !b.deleted {
			found[b.cidr.String()] = b
		}
	}
	records := make([]json.RawMessage, len(rs))
	for i, r := range rs {
		if r.Pool == emptyHandles {
			records[i], err = recordEmptyHandle(r, storedHandles[store.name(handles, r.Key)])
		} else {
			records[i], err = recordAllocation(r, found[r.Pool], storedHandles[store.name(handles, r.Group)])
		}
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// recordAllocation returns the record of what was listed; nil where it is not that
// any more, or would not be the same when it is read.
func recordAllocation(r reaper.Allocation, b block, stored object) (json.RawMessage, error) {
	ordinal, err := b.find(r)
	if err != nil || ordinal < 0 {
		return nil, nil
	}
	index := *b.allocations[ordinal]
	rec := record{Ordinal: ordinal, Index: index, Attribute: string(b.attributes[index])}
	if number, ok := b.sequences[strconv.Itoa(ordinal)]; ok {
		rec.Sequence = &number
	}
	if stored.raw != nil {
		h, err := readHandle(stored)
		if err != nil {
			return nil, nil
		}
		if h.id == r.Group { // or there is another one, whose name differs in case only
			rec.Handle = &handleRecord{stored.name, string(stored.raw)}
		}
	}
	if !utf8.ValidString(rec.Attribute) || !utf8.Valid(stored.raw) {
		return nil, nil
	}
	return json.Marshal(rec)
}

// recordLeftover is recordAllocation for a handle without an address.
func recordEmptyHandle(r reaper.Allocation, stored object) (json.RawMessage, error) {
	h, err := readHandle(stored)
	if err != nil || h.id != r.Key || h.token() != r.Token || !utf8.Valid(stored.raw) {
		return nil, nil
	}
	return json.Marshal(handleRecord{stored.name, string(stored.raw)})
}

// readsWorth is how many objects of a list cost as much as one that is read alone.
const readsWorth = 20

// readAll reads blocks by CIDR, or handles by ID: each of them, or all that there
// are, whichever costs the datastore less. It returns what there is by name, and
// maybe more. A read that fails is not repeated; the list is patient.
func (b *Backend) readAll(ctx context.Context, store datastore, k kind, ids []string) (map[string]object, error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	b.mu.Lock()
	size := b.sizes[k]
	b.mu.Unlock()
	found := make(map[string]object, len(ids))
	if len(ids)*readsWorth <= size && readEach(ctx, store, k, ids, found) == nil {
		return found, nil
	}
	all, err := store.list(ctx, k)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		found[o.name] = o
	}
	return found, nil
}

// readEach reads one by one.
func readEach(ctx context.Context, store datastore, k kind, ids []string, into map[string]object) error {
	var g errgroup.Group
	var mu sync.Mutex
	g.SetLimit(handlesAtOnce)
	for _, id := range ids {
		g.Go(func() error {
			o, err := store.get(ctx, k, id)
			if err != nil {
				if errors.Is(err, errGone) {
					return nil
				}
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			into[o.name] = o
			return nil
		})
	}
	return g.Wait()
}
