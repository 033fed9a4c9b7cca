package whereabouts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// poolsFresh is how recently the IPPools must have been read before a tombstone is written.
// That check only avoids a tombstone that would be removed again.
const poolsFresh = 10 * time.Second

// A removal is the release of one overlapping reservation.
type removal struct {
	warrant ipam.Warrant
	r       ipam.Allocation
	marked  object // with its tombstone
	begun   bool   // there may be a tombstone
	answer  error
	over    bool // the answer is final
}

// end ends the removal with an answer.
func (u *removal) end(answer error) { u.answer, u.over = answer, true }

// Release implements ipam.Backend. It completes each step for all entries before the next:
//
//  1. It keeps an object if a pool holds the address for this owner. Otherwise another range
//     could take the address, and if the owner came back, its ADD would loop on its old entry. It also
//     keeps one that is bound to the slice of a node if pods on more nodes can adopt it by now.
//  2. It puts tombstones into the objects that are still as listed.
//  3. It lists the pools and checks the owners again. A pod that saw an object as its own
//     before step 2 exists by now, or has left an entry in a pool. A pod on the network of its node
//     cannot have seen it, and nor can one on a node to whose slice the object is not bound.
//  4. It deletes the objects that are still as step 2 wrote them. If the owner exists or has an
//     entry in a pool, or if a webhook denies the deletion, it puts the old spec back instead.
//
// If a crash interrupts this after step 2, the objects are listed as Interrupted, and the next
// release continues. The same goes for objects whose warrants expire before step 4.
func (b *Overlapping) Release(ctx context.Context, ws []ipam.Warrant) []error {
	all := make([]*removal, len(ws))
	for i, w := range ws {
		all[i] = &removal{warrant: w}
		var err error
		if all[i].r, err = w.Allocation(); err != nil {
			all[i].end(err)
		}
	}
	b.check(ctx, open(all))
	b.each(ctx, open(all), b.mark)
	b.lookAgain(ctx, open(all))
	b.each(ctx, open(all), b.finish)
	errs := make([]error, len(all))
	for i, u := range all {
		if errs[i] = u.answer; !errors.Is(u.answer, ipam.ErrAgain) {
			b.begun.Delete(u.r.Pool)
		}
		if u.begun {
			errs[i] = ipam.Begun(u.answer)
		}
	}
	return errs
}

// open returns the removals that are not over.
func open(all []*removal) []*removal {
	var some []*removal
	for _, u := range all {
		if !u.over {
			some = append(some, u)
		}
	}
	return some
}

// each calls do for the removals, several at the same time. It starts none once the context is
// cancelled.
func (b *Overlapping) each(ctx context.Context, some []*removal, do func(context.Context, *removal)) {
	var g errgroup.Group
	g.SetLimit(b.atOnce)
	for _, u := range some {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				u.end(kube.Transient(err))
				return nil
			}
			do(ctx, u)
			return nil
		})
	}
	_ = g.Wait() // the answers are in the removals
}

// check is step 1. It skips objects into which an earlier attempt put a tombstone.
func (b *Overlapping) check(ctx context.Context, some []*removal) {
	some = slices.DeleteFunc(some, func(u *removal) bool {
		_, begun := b.begun.Load(u.r.Pool)
		return begun
	})
	held, err := b.heldBy(ctx, some, time.Now().Add(-poolsFresh))
	for i, u := range some {
		switch {
		case err != nil:
			u.end(kube.Transient(err))
		case held[i] != "":
			u.end(fmt.Errorf("%w: %s", ipam.ErrKept, held[i]))
		}
	}
}

// mark is step 2. It does not rewrite the tombstone of an earlier attempt: step 4 finds out
// whether that is still there.
func (b *Overlapping) mark(ctx context.Context, u *removal) {
	r, err := u.warrant.Allocation()
	if err != nil {
		u.end(err)
		return
	}
	u.begun = true
	if marked, begun := b.begun.Load(r.Pool); begun {
		u.marked, _ = marked.(object)
		return
	}
	u.marked, err = b.setTombstone(ctx, r.Pool, r)
	switch {
	case gone(err, overlappingResource, r.Pool):
		u.end(nil)
	case err != nil:
		u.end(kube.Transient(err))
	default:
		b.begun.Store(r.Pool, u.marked)
	}
}

// lookAgain is step 3. It begins after the last tombstone was written. If it gives a removal an
// answer without ending it, the answer is why the object gets its old spec back.
func (b *Overlapping) lookAgain(ctx context.Context, some []*removal) {
	held, err := b.heldBy(ctx, some, time.Now())
	if err == nil {
		err = b.passed(ctx, some, held)
	}
	if err != nil {
		for _, u := range some {
			u.end(kube.Transient(err))
		}
		return
	}
	ws := make([]ipam.Warrant, len(some))
	for i, u := range some {
		ws[i] = u.warrant
	}
	fresh, errs := ipam.Renew(ctx, ws)
	for i, u := range some {
		u.warrant, u.answer = fresh[i], errs[i]
		switch {
		case u.answer == nil && held[i] != "":
			// The owner existed for a moment before the tombstone was written, or is about to adopt it.
			u.answer = fmt.Errorf("%w: %s", ipam.ErrKept, held[i])
		case u.answer != nil && !errors.Is(u.answer, ipam.ErrReturned) && !errors.Is(u.answer, ipam.ErrKept):
			u.end(u.answer)
		}
	}
}

// finish is step 4.
func (b *Overlapping) finish(ctx context.Context, u *removal) {
	b.begun.Delete(u.r.Pool) // the tombstone goes, or has been replaced
	if u.answer != nil {
		if back := b.clearTombstone(ctx, u.r.Pool, u.marked); back != nil {
			u.end(kube.Transient(back))
		}
		return
	}
	if _, err := u.warrant.Allocation(); err != nil {
		b.begun.Store(u.r.Pool, u.marked)
		u.end(err)
		return
	}
	err := b.remove(ctx, u.r.Pool, u.marked)
	if kube.IsDenied(err) {
		// The next run would also be denied. So the object becomes what it was.
		if back := b.clearTombstone(ctx, u.r.Pool, u.marked); back != nil {
			err = fmt.Errorf("%w; its tombstone stays: %w", err, back)
		}
	}
	u.end(kube.Unsure(kube.Transient(err)))
}
