package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// slowLists is after how many lists of all pods that took too long no more are read.
const slowLists = 5

// A Confirmer looks at owners a second time, right before the write. It is safe for
// concurrent use. Concurrent callers share one list.
//
// Owners that have a name are read by name, because a list of pods comes from the API server's
// watch cache, as the census did. A cache that has lost an event lacks a pod in every list until
// it is restarted (kubernetes issue 123072). A read by name comes from etcd (Get in
// k8s.io/apiserver/pkg/storage/cacher). Only allocations that name no pod rest on another list.
type Confirmer struct {
	cluster  census.Cluster
	census   census.Census  // of the first look
	backends []ipam.Backend // whose endpoints are read
	guard    *guard

	mu      sync.Mutex
	given   map[*ipam.Allocation]judge.Orphan // those that got a warrant
	last    *listing                          // the latest list; nil if there is none to share
	slow    map[time.Duration]int             // the lists that took too long, by how old the looks may be
	next    int                               // the pod of the census at which the search for a witness goes on
	lacking error                             // why no list is believed any more
}

// NewConfirmer returns a Confirmer for orphans of these backends that were judged by the census.
func NewConfirmer(cluster census.Cluster, census census.Census, backends ...ipam.Backend) *Confirmer {
	return &Confirmer{
		cluster:  cluster,
		census:   census,
		backends: backends,
		given:    make(map[*ipam.Allocation]judge.Orphan),
		slow:     make(map[time.Duration]int),
		guard:    new(guard),
	}
}

// Halted implements Renewer.
func (c *Confirmer) Halted() error { return c.guard.halted() }

// Confirm looks at the owners of the orphans again. It returns a Warrant or an error
// for each, in the same order.
//
// It returns a Warrant if the reason is still the same, or if the owner is absent now.
// The error wraps ErrReturned if the owner is there, ErrKept if the rules now give
// another reason, and ErrAgain if a later look may succeed. It wraps none of them
// if no later look can succeed, for example because reading pods is forbidden.
//
// A look that fails or takes too long affects only the orphans that need it. Confirm
// returns while the other warrants are still valid. It gives none at all if a pod that the census
// saw running is gone, if a list lacks a pod (see Lacking), or if the run may release nothing now: then the
// errors are *ipam.HaltedError.
func (c *Confirmer) Confirm(ctx context.Context, orphans []judge.Orphan) ([]ipam.Warrant, []error) {
	warrants, errs := make([]ipam.Warrant, len(orphans)), make([]error, len(orphans))
	second, listErr, err := c.look(ctx, orphans)
	for i, o := range orphans {
		switch {
		case err != nil:
			errs[i] = err
		case o.NeedsList() && listErr != nil:
			errs[i] = listErr
		default:
			warrants[i], errs[i] = c.warrant(o, second)
		}
	}
	return warrants, errs
}

// warrant decides again on the orphan and its siblings, by the second look.
func (c *Confirmer) warrant(o judge.Orphan, second *judge.SecondLook) (ipam.Warrant, error) {
	looked, err := second.StillOrphaned(o)
	if err != nil {
		return ipam.Warrant{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given[o.Allocation()] = o
	return ipam.NewWarrant(o.Allocation(), looked, c), nil
}

// Forget makes the next Confirm look at the pods again.
func (c *Confirmer) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
}

// Lacking returns why no list of this API server is believed any more; nil if none was found to
// lack a pod. Then any address may be that of a pod which the lists lack, so no more warrants are
// given.
func (c *Confirmer) Lacking() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lacking
}

// Renew implements Renewer. It never shares a list that began before the call. It looks even
// if the warrants have expired: a look needs none.
func (c *Confirmer) Renew(ctx context.Context, ws []ipam.Warrant) ([]ipam.Warrant, []error) {
	orphans := make([]judge.Orphan, len(ws))
	c.mu.Lock()
	for i, w := range ws {
		orphans[i] = c.given[w.For()]
	}
	c.mu.Unlock()
	c.Forget()
	if !ipam.TurnOf(ctx).SendBy.IsZero() {
		ctx = ipam.SendBy(ctx, time.Time{}, nil)
	}
	return c.Confirm(ctx, orphans)
}

// readsAtOnce is how many owners of a batch are read at the same time.
const readsAtOnce = 16

// All looks of a batch, and after them that of the guard, end before the first of them is as old as it may be. The rest of the time
// is for the write.
func maxRead(fresh time.Duration) time.Duration   { return fresh / 2 }     // for the reads of a batch together
func maxList(fresh time.Duration) time.Duration   { return fresh * 3 / 4 } // for a list
func maxGuard(fresh time.Duration) time.Duration  { return fresh / 4 }     // for the guard, after the reads
func shareList(fresh time.Duration) time.Duration { return fresh / 2 }     // while a list is shared

// errSlow says that the API server took too long. What was read too late could not be
// released, and the other looks of the batch would become too old.
var errSlow = errors.New("the second look took too long")

// A listing is a list of all pods, under way or done.
type listing struct {
	began  time.Time
	done   chan struct{} // closed when the list is done
	census census.Census
	err    error
}

// look looks at every owner. With listErr, there is no list of all pods for the orphans that need
// one. With err, no orphan gets a warrant.
func (c *Confirmer) look(ctx context.Context, orphans []judge.Orphan) (second *judge.SecondLook, listErr, err error) {
	if err := cmp.Or(c.believed(), c.Halted()); err != nil {
		return nil, nil, err
	}
	if ipam.TurnOf(ctx).Unqueued {
		ctx = ipam.Polite(ctx)
	}
	fresh := judge.FreshnessOf(orphans)
	living := c.census
	var wg sync.WaitGroup
	if slices.ContainsFunc(orphans, judge.Orphan.NeedsList) {
		wg.Go(func() {
			var listed census.Census
			if listed, listErr = c.shared(ctx, fresh); listErr == nil {
				living = listed
			}
		})
	}
	looks, err := c.read(ctx, fresh, orphans)
	// A restore writes the ledger first, and then the store. So what it puts back before this read is
	// kept, and what it puts back afterwards, no warrant outlives by more than its freshness.
	guarded, cancel := context.WithTimeoutCause(ctx, maxGuard(fresh), errSlow)
	defer cancel()
	newer, halted := c.guard.look(guarded)
	wg.Wait()
	if err = cmp.Or(halted, err); err == nil {
		err = c.compare(looks)
	}
	second = judge.NewSecondLook(living.With(looks))
	second.Ledger = newer
	return second, listErr, err
}

// maxLag is how much older than the census a pod must be if it counts as missing from its list.
// The times are by two clocks.
const maxLag = time.Minute

// compare compares what was read by name with the census. It returns an error if a pod was read
// that the list of the census must have had.
func (c *Confirmer) compare(looks map[ipam.PodRef]census.Reading) error {
	for ref, l := range looks {
		listed, presence := c.census.Pod(ref)
		known := presence == census.Present && listed.UID == l.Pod.UID
		created := l.Pod.Created
		if l.Presence != census.Present || known || created.IsZero() || !created.Before(c.census.Began().Add(-maxLag)) {
			continue
		}
		c.mu.Lock()
		c.lacking = fmt.Errorf("lists of this API server lack pods: pod %s was created at %s, and the list of %s lacks it. "+
			"Any address may be that of such a pod, so no more releases begin. Restart the API server, whose watch cache may have "+
			"lost an event, or see whether a proxy filters its lists", ref, judge.Stamp(created), judge.Stamp(c.census.Began()))
		c.mu.Unlock()
	}
	return c.believed()
}

// believed returns an error that wraps ErrKept if the lists lack pods.
func (c *Confirmer) believed() error {
	if lacking := c.Lacking(); lacking != nil {
		return fmt.Errorf("%w: %w", ipam.ErrKept, lacking)
	}
	return nil
}

// witness returns a pod that ran when the pods were listed, each time another one. It reports
// false if there is none, and on a node, where the container runtime decides.
func (c *Confirmer) witness() (census.Pod, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := c.census.Pods()
	for range pods {
		if c.census.OnNode() {
			break
		}
		pod := pods[c.next%len(pods)]
		c.next++
		if !pod.Finished && pod.InStatus > 0 {
			c.next += len(pods) / 7 // its neighbours may vanish together with it
			return pod, true
		}
	}
	return census.Pod{}, false
}

// mostWitnesses is how many pods that ran must be gone before a look gives no warrant. Some end
// between the census and the look.
const mostWitnesses = 5

// witnessed reads pods that ran when the pods were listed, until it finds one. It returns an error
// if they are gone, or one could not be read: if the API server was emptied, or answers for another
// cluster now, every owner looks absent.
func (c *Confirmer) witnessed(ctx context.Context) error {
	var gone []string
	for range mostWitnesses {
		want, ok := c.witness()
		if !ok {
			return nil
		}
		got, presence, err := c.cluster.Pod(ctx, want.Ref)
		switch {
		case err != nil:
			return fmt.Errorf("get pod %s: %w", want.Ref, lookError(ctx, err))
		case presence == census.Present && got.UID == want.UID:
			return nil
		}
		if name := want.Ref.String(); !slices.Contains(gone, name) {
			gone = append(gone, name)
		}
	}
	return fmt.Errorf("%w: none of these pods exists any more, although all ran when the pods were listed: %s; "+
		"the API server may have been emptied, or answer for another cluster", ipam.ErrAgain, strings.Join(gone, ", "))
}

// shared returns a list of all pods that is young enough. If another caller is reading one,
// shared waits for that one. It also shares failures. If too many lists were slow, it reads no
// more.
func (c *Confirmer) shared(ctx context.Context, fresh time.Duration) (census.Census, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxList(fresh), errSlow)
	defer cancel()
	c.mu.Lock()
	if c.slow[fresh] >= slowLists {
		c.mu.Unlock()
		return census.Census{}, fmt.Errorf("list pods: %w", ipam.Again(errSlow))
	}
	if l := c.last; l != nil && time.Since(l.began) <= shareList(fresh) {
		c.mu.Unlock()
		select {
		case <-l.done:
			return l.census, l.err
		case <-ctx.Done():
			return census.Census{}, fmt.Errorf("list pods: %w", lookError(ctx, ctx.Err()))
		}
	}
	l := &listing{began: time.Now(), done: make(chan struct{})}
	c.last = l
	c.mu.Unlock()

	if l.census, l.err = c.census.Again(ctx, c.cluster); l.err != nil {
		l.err = lookError(ctx, l.err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(l.err, errSlow) {
		c.slow[fresh]++
	}
	close(l.done)
	return l.census, l.err
}

// read reads the owners that have a name, one by one, and then the endpoints of those whose sandbox
// counts as replaced; and a witness. Each look has its own time
// and its own error, so a slow or failed one does not affect the others. The looks that are not
// done in time are given up. The error is that of the witness.
func (c *Confirmer) read(ctx context.Context, fresh time.Duration, orphans []judge.Orphan) (map[ipam.PodRef]census.Reading, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxRead(fresh), errSlow)
	defer cancel()
	var err error
	var witness sync.WaitGroup
	witness.Go(func() { err = c.witnessed(ctx) })
	looks := readPods(ctx, c.cluster, maps.Keys(judge.Owners(orphans)))
	c.readEndpoints(ctx, orphans, looks)
	witness.Wait()
	return looks, err
}

// readPods reads pods by name, each with its own error.
func readPods(ctx context.Context, cluster census.Cluster, refs iter.Seq[ipam.PodRef]) map[ipam.PodRef]census.Reading {
	looks := make(map[ipam.PodRef]census.Reading)
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(readsAtOnce)
	for ref := range refs {
		g.Go(func() error {
			l := census.Reading{Began: time.Now(), Err: ctx.Err()}
			if l.Err == nil {
				l.Pod, l.Presence, l.Err = cluster.Pod(ctx, ref)
			}
			if l.Err != nil {
				l.Presence, l.Err = census.Unknown, fmt.Errorf("get pod %s: %w", ref, lookError(ctx, l.Err))
			}
			mu.Lock()
			defer mu.Unlock()
			looks[ref] = l
			return nil
		})
	}
	_ = g.Wait() // every failure is in its look
	return looks
}

// lookError returns the error of a look under a context. It wraps ErrAgain if a later
// look may succeed.
func lookError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		err = fmt.Errorf("%w: %w", errSlow, err)
	}
	return ipam.Again(err)
}
