package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// LockName is the name of the Lease that a run holds until it ends.
const LockName = "ip-reaper"

// A lease that has not been renewed for leaseDuration is free. Two renewals in a row may fail
// before that.
const (
	leaseDuration  = 30 * time.Second
	renewEvery     = 10 * time.Second
	releaseTimeout = 5 * time.Second
)

// Lock is the Lease of one namespace. It implements reaper.Lock, and is safe for
// concurrent use. It needs the rights to get, create and update leases.
//
// client-go's leaderelection does not fit, because it waits for a taken lease. A run that
// finds the lease taken must report that and end.
type Lock struct {
	// Ticks starts the ticks at which the lease is renewed. stop ends them. NewLock
	// sets Ticks to a time.Ticker.
	Ticks func() (ticks <-chan time.Time, stop func())

	leases    coordinationv1client.LeaseInterface
	namespace string
	name      string // for messages
	now       func() time.Time
	logger    *slog.Logger
	taken     atomic.Pointer[term] // the last one; nil if there was none
}

// NewLock returns the lock of a namespace.
func NewLock(client coordinationv1client.LeasesGetter, namespace string, now func() time.Time, logger *slog.Logger) *Lock {
	ticks := func() (<-chan time.Time, func()) {
		t := time.NewTicker(renewEvery)
		return t.C, t.Stop
	}
	return &Lock{
		Ticks: ticks, leases: client.Leases(namespace), namespace: namespace, name: "lease " + namespace + "/" + LockName,
		now: now, logger: logger,
	}
}

// Acquire implements reaper.Lock. It renews the lease until release is called, even after
// ctx has ended. If another holder takes the lease, Acquire logs that and stops renewing.
// release takes at most releaseTimeout, or ipam.Ending after ctx has ended. A second call does nothing.
func (l *Lock) Acquire(ctx context.Context, holder string) (release func(), err error) {
	if holder == "" {
		return nil, fmt.Errorf("%s: the holder has no name, and a lease without a holder is free", l.name)
	}
	ctx = ipam.Unqueued(ctx) // the lease might expire while it waits
	began := l.now()
	t := &term{Lock: l, holder: holder, since: metav1.NewMicroTime(began.Truncate(time.Microsecond)), renewed: began}
	var locked *reaper.LockedError
	err = kube.Patiently(ctx, func(ctx context.Context) error {
		err := t.take(ctx)
		if errors.As(err, &locked) {
			return nil // a taken lease needs no retry
		}
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", l.name, err)
	case locked != nil:
		return nil, locked
	}
	l.taken.Store(t)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		t.keep(renewing)
	}()
	return sync.OnceFunc(func() {
		stop()
		<-stopped
		t.end(ctx)
	}), nil
}

// Lapsed implements reaper.Lock. Others take a lease leaseDuration after the time of its last renewal,
// which is that at which the renewal was sent. Their clocks may differ from this one: then the next
// renewal finds out, at most renewEvery later.
func (l *Lock) Lapsed() error {
	t := l.taken.Load()
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch age := ipam.AgeOf(t.renewed, t.now()); {
	case t.lost:
		return fmt.Errorf("the lock was lost (%s)", t.name)
	case age >= leaseDuration:
		text := fmt.Sprintf("the lock was last renewed %v ago, so another run may have it (%s)", age.Round(time.Second), t.name)
		return ipam.Worded(text, ipam.ErrAgain)
	}
	return nil
}

// A term is the time for which one holder has the lease. It is not safe for concurrent use, except
// for what mu guards.
type term struct {
	*Lock
	holder string
	since  metav1.MicroTime // in microseconds, as an API server keeps it

	newOwner string // the holder of a lost lease; empty if it has none

	mu      sync.Mutex
	renewed time.Time // when the last renewal that succeeded was sent, by both clocks
	lost    bool      // the lease is no longer this term's
}

// take takes the lease if it is free. Its write fails if another client writes the lease
// meanwhile. If the lease is taken, take returns a *reaper.LockedError.
func (t *term) take(ctx context.Context) error {
	lease, err := t.leases.Get(ctx, LockName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LockName}, Spec: t.spec(0)}
		_, err = t.leases.Create(ctx, lease, metav1.CreateOptions{})
		return inNamespace(err, t.namespace)
	case err != nil:
		return err
	case t.has(lease): // the answer to an earlier try was lost
		return nil
	case !free(lease, t.now()):
		since := firstOf(lease, lease.Spec.AcquireTime, lease.Spec.RenewTime)
		return &reaper.LockedError{Holder: ptr.Deref(lease.Spec.HolderIdentity, ""), Since: since, Lock: t.name}
	}
	// The number must not overflow: an API server refuses a negative one, and then no run could
	// take the lease again.
	lease.Spec = t.spec(min(ptr.Deref(lease.Spec.LeaseTransitions, 0), math.MaxInt32-1) + 1)
	_, err = t.leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// spec returns the lease at the beginning of the term.
func (t *term) spec(transitions int32) coordinationv1.LeaseSpec {
	return coordinationv1.LeaseSpec{
		HolderIdentity:       &t.holder,
		LeaseDurationSeconds: new(int32(leaseDuration / time.Second)),
		AcquireTime:          &t.since,
		RenewTime:            &t.since,
		LeaseTransitions:     &transitions,
	}
}

// has reports whether the lease is this term's. Another holder with the same name has another
// time.
func (t *term) has(lease *coordinationv1.Lease) bool {
	return ptr.Deref(lease.Spec.HolderIdentity, "") == t.holder && t.since.Equal(lease.Spec.AcquireTime)
}

// keep renews the lease at each tick until ctx ends or the lease is lost. If a renewal
// fails, the next tick tries again.
func (t *term) keep(ctx context.Context) {
	ticks, stop := t.Ticks()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		timed, cancel := context.WithTimeout(ctx, renewEvery)
		err := t.update(timed, t.holder)
		cancel()
		switch {
		case t.lost:
			t.warnOfLoss()
			return
		case err != nil && ctx.Err() == nil:
			t.logger.Warn("the lock was not renewed", "lock", t.name, "err", err)
		}
	}
}

// end frees the lease if it is still this term's, even after ctx has ended.
func (t *term) end(ctx context.Context) {
	if t.lost {
		return
	}
	ctx, cancel := ipam.Finish(ctx, releaseTimeout)
	defer cancel()
	err := kube.Patiently(ctx, func(ctx context.Context) error { return t.update(ctx, "") })
	switch {
	case err != nil:
		t.logger.Warn("the lock was not released, and is held until it expires", "lock", t.name, "err", err)
	case t.newOwner != "": // without a new owner, an earlier try freed the lease
		t.warnOfLoss()
	}
}

// warnOfLoss logs that the lock is another's.
func (t *term) warnOfLoss() {
	t.logger.Warn("the lock was lost; this run releases nothing more", "lock", t.name, "holder", t.newOwner)
}

// update writes the lease with a holder: this term's to renew it, or none to free it.
// Its write fails if another client writes the lease meanwhile. If the lease is lost,
// update sets t.lost and writes nothing.
func (t *term) update(ctx context.Context, holder string) error {
	lease, err := t.leases.Get(ctx, LockName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease, err = &coordinationv1.Lease{}, nil // another client deleted the lease
	}
	switch {
	case err != nil:
		return err
	case !t.has(lease):
		t.newOwner = ptr.Deref(lease.Spec.HolderIdentity, "")
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lost = true
		return nil
	}
	sent := t.now()
	lease.Spec.HolderIdentity = &holder
	lease.Spec.RenewTime = new(metav1.NewMicroTime(sent))
	if _, err = t.leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed = sent
	return nil
}

// free reports whether the lease has no holder, or has expired.
//
// A renewal further in the future than the lease's duration counts as expired. Only a holder
// with a wrong clock can have written it, and its lease could stay taken for years. If our own
// clock is wrong instead, two runs go on in parallel, until the other one tries to renew it.
func free(lease *coordinationv1.Lease, now time.Time) bool {
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	if duration <= 0 {
		duration = leaseDuration
	}
	age := now.Sub(firstOf(lease, lease.Spec.RenewTime, lease.Spec.AcquireTime))
	return ptr.Deref(lease.Spec.HolderIdentity, "") == "" || age >= duration || age < -duration
}

// firstOf returns the first time that is set, or else the lease's creation time.
func firstOf(lease *coordinationv1.Lease, times ...*metav1.MicroTime) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t.Time
		}
	}
	return lease.CreationTimestamp.Time
}
