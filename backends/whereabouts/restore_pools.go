package whereabouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Record implements ipam.Backend. It reads nothing: the token is the entry as stored, and an
// entry that has changed is not released.
func (b *Pools) Record(_ context.Context, rs []ipam.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(rs))
	for i, r := range rs {
		if stored := json.RawMessage(r.Token); checkEntry(stored) == nil {
			records[i] = stored
		}
	}
	return records, nil
}

// restoreTries is how often Restore reads a pool that other clients keep changing.
const restoreTries = 10

// Restore implements ipam.Backend with one JSON patch. The patch applies only to the pool as it
// was read. If another writer changed the pool, Restore reads it again. It never creates a
// pool.
func (b *Pools) Restore(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error {
	for try := 1; ; try++ {
		p, free, errs := b.compare(ctx, pool, rs)
		if len(free) == 0 {
			return errs
		}
		if refused := permit(); refused != nil {
			for i := range free {
				errs[i] = refused
			}
			return errs
		}
		err := b.patch(ctx, pool, p.additions(free))
		invalid := apierrors.IsInvalid(err)
		switch changed := invalid && len(causes(err)) == 0; {
		case changed && try < restoreTries && ctx.Err() == nil:
			continue
		case changed:
			err = fmt.Errorf("%w: another writer changed the pool: %w", ipam.ErrAgain, err)
		case invalid:
			refuseSome(free, errs, err)
			return errs
		case gone(err, poolResource, pool):
			err = errPoolGone
		}
		for i := range free {
			errs[i] = kube.Unsure(kube.Transient(err))
		}
		return errs
	}
}

// refuseSome sets the errors for a patch that the API server refused because of the pool's
// schema: the entries that it names have failed, and the others may be tried again without
// them.
func refuseSome(entries map[int]ipam.Record, errs []error, refusal error) {
	named := false
	for i, r := range entries {
		field := "spec.allocations." + r.Key
		if slices.ContainsFunc(causes(refusal), func(c metav1.StatusCause) bool {
			return c.Field == field || strings.HasPrefix(c.Field, field+".")
		}) {
			errs[i] = fmt.Errorf("the API server refuses the entry: %w", refusal)
			named = true
		}
	}
	for i := range entries {
		switch {
		case errs[i] != nil:
		case named:
			errs[i] = fmt.Errorf("%w: the API server refuses another entry: %w", ipam.ErrAgain, refusal)
		default:
			errs[i] = fmt.Errorf("the API server refuses the pool with the entries; correct the field it names: %w", refusal)
		}
	}
}

var errPoolGone = fmt.Errorf("%w: the pool is gone", ipam.ErrTaken)

// compare returns the pool, the records whose places in it are free, by index, and the answers for
// the others. Without a good record, it reads nothing.
func (b *Pools) compare(ctx context.Context, pool string, rs []ipam.Record) (p ipPool, free map[int]ipam.Record, errs []error) {
	free, errs = checkRecords(pool, rs, readEntry)
	if len(free) == 0 {
		return p, free, errs
	}
	p, err := b.pool(ctx, pool)
	if gone(err, poolResource, pool) {
		err = errPoolGone
	}
	b.mu.Lock()
	ranges := rangesAt(p.place(), b.last.ranges)
	b.mu.Unlock()
	respelt := p.respelt()
	for i, r := range free {
		if errs[i] = kube.Transient(err); err == nil {
			errs[i] = p.checkFree(r, respelt, ranges)
		}
		if errs[i] != nil {
			delete(free, i)
		}
	}
	return p, free, errs
}

// checkEntry returns an error if the stored document is not an entry of a pool.
func checkEntry(stored json.RawMessage) error {
	var e *entry
	if err := kube.Decode(stored, &e); err != nil {
		return fmt.Errorf("the stored entry: %w", err)
	}
	if e == nil {
		return errors.New("the stored entry is null")
	}
	return nil
}

// readEntry returns the record, with an error if it has no entry.
func readEntry(r ipam.Record) (ipam.Record, error) { return r, checkEntry(r.Stored) }

// checkFree returns nil if the place of the record is free, ErrPresent if its entry
// is there, and an error that wraps ErrTaken if another entry is there. The ranges are
// those of the pool: none gives an address outside of its bounds.
func (p ipPool) checkFree(r ipam.Record, respelt map[string]string, ranges []attachedRange) error {
	ip, err := addressAt(p.prefix, r.Key)
	if _, readable := strconv.ParseInt(r.Key, 10, 64); err == nil && readable != nil {
		err = errors.New("the plugin reads no offset above 2^63-1")
	}
	if err != nil {
		return fmt.Errorf("the record of %s in %s: %w", r.Key, r.Pool, err)
	}
	if ip.String() != r.IP {
		return fmt.Errorf("the record of %s in %s: its address is %q, and the pool has %s at that offset", r.Key, r.Pool, r.IP, ip)
	}
	key, other := respelt[r.Key]
	if !other {
		key = r.Key
	}
	stored, held := p.allocations[key]
	switch {
	case !held && r.InUse:
		return nil
	case !held:
		return checkGiven(ip, ranges)
	}
	if !other && sameJSON(stored, r.Stored) {
		return ipam.ErrPresent
	}
	var e entry
	if err := kube.Decode(stored, &e); err != nil {
		e.PodRef = "" // the answer quotes the entry instead
	}
	return takenBy(e.PodRef, stored)
}

// respelt returns the keys that the plugin would write differently, by the key that it would
// write: it also reads +7 and 007 as 7 (toIPReservationList in its pkg/storage/kubernetes).
func (p ipPool) respelt() map[string]string {
	keys := make(map[string]string)
	for key := range p.allocations {
		if offset, err := strconv.ParseInt(key, 10, 64); err == nil {
			if plain := strconv.FormatInt(offset, 10); plain != key {
				keys[plain] = key
			}
		}
	}
	return keys
}

// additions returns the patch that adds the entries to the pool. It begins with a test of the
// resourceVersion: an add operation would replace an existing entry.
func (p ipPool) additions(entries map[int]ipam.Record) []operation {
	version := json.RawMessage(strconv.Quote(p.Metadata.ResourceVersion))
	patch := []operation{{Op: "test", Path: "/metadata/resourceVersion", Value: version}}
	if p.allocations == nil {
		patch = append(patch, operation{Op: "add", Path: "/spec/allocations", Value: json.RawMessage("{}")})
	}
	for _, i := range slices.Sorted(maps.Keys(entries)) {
		// Keys are decimal numbers here, so the path needs no escaping.
		patch = append(patch, operation{Op: "add", Path: "/spec/allocations/" + entries[i].Key, Value: entries[i].Stored})
	}
	return patch
}
