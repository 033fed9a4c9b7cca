package state

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// Who gets and keeps the lease is tested on a real API server, in integration/run. These
// tests only cover what a lease means once it was read.

// noon is when these tests look at leases.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// at is a time in a lease, d after noon.
func at(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(noon.Add(d))) }

func TestLeaseIsFreeWithoutAHolderOrWithoutASignOfLife(t *testing.T) {
	const (
		year    = 365 * 24 * time.Hour
		instant = time.Microsecond
	)
	for _, tt := range []struct {
		name     string
		holder   *string
		seconds  *int32
		acquired *metav1.MicroTime
		renewed  *metav1.MicroTime
		created  time.Duration
		free     bool
	}{
		{"renewed just now", new("a"), new(int32(30)), at(-year), at(0), -year, false},
		{"it expires now", new("a"), new(int32(30)), at(-time.Minute), at(-30 * time.Second), -year, true},
		{"of a longer duration", new("a"), new(int32(3600)), at(-year), at(instant - time.Hour), -year, false},

		{"no holder", nil, new(int32(30)), at(0), at(0), 0, true},
		{"an empty holder", new(""), new(int32(30)), at(0), at(0), 0, true},

		{"no duration", new("a"), nil, at(-year), at(instant - leaseDuration), -year, false},
		{"a negative duration, expired", new("a"), new(int32(-30)), at(-year), at(-leaseDuration), -year, true},

		{"the holder's clock is ahead", new("a"), new(int32(30)), at(0), at(30 * time.Second), -year, false},
		{"the holder's clock is too far ahead", new("a"), new(int32(30)), at(0), at(30*time.Second + instant), -year, true},

		{"never renewed, acquired just now", new("a"), new(int32(30)), at(-time.Second), nil, -year, false},
		{"no time of its own, created just now", new("a"), new(int32(30)), nil, nil, -time.Second, false},
		{"no time of its own, created long ago", new("a"), new(int32(30)), nil, new(metav1.MicroTime{}), -year, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lease := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(tt.created))},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: tt.holder, LeaseDurationSeconds: tt.seconds, AcquireTime: tt.acquired, RenewTime: tt.renewed,
				},
			}
			if got := free(lease, noon); got != tt.free {
				t.Errorf("free = %v, want %v", got, tt.free)
			}
		})
	}
}

// Another run takes a lease half a minute after its last renewal. So the lock lapses then, by the clock
// that ran further: the monotonic one stops while a machine sleeps, and the wall clock may be set.
func TestLockLapsesByTheClockThatRanFurther(t *testing.T) {
	now := time.Now()
	const young = leaseDuration - time.Nanosecond
	for _, tt := range []struct {
		monotonic, wall time.Duration // since the last renewal
		lapsed          bool
	}{
		{0, 0, false},
		{young, young, false},
		{leaseDuration, 0, true},
		{0, leaseDuration, true},
		{young, -time.Hour, false},
		{-time.Hour, young, false},
	} {
		l := NewLock(fake.NewClientset().CoordinationV1(), ns, func() time.Time { return now }, slog.New(slog.DiscardHandler))
		l.taken.Store(&term{Lock: l, renewed: reapertest.Looked(t, now, tt.monotonic, tt.wall)})
		if err := l.Lapsed(); (err != nil) != tt.lapsed || tt.lapsed && !errors.Is(err, ipam.ErrAgain) {
			t.Errorf("renewed %v ago, and %v by the wall clock: %v", tt.monotonic, tt.wall, err)
		}
	}
}

// A renewal counts from when it was sent, and only if it succeeded. A lapsed lock that is renewed is
// kept: nobody took it. One that another took is lost, even if that one has ended.
func TestLockIsKeptByRenewals(t *testing.T) {
	client, now := fake.NewClientset(), noon
	l := NewLock(client.CoordinationV1(), ns, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	l.Ticks = func() (<-chan time.Time, func()) { return nil, func() {} }
	if err := l.Lapsed(); err != nil {
		t.Errorf("before it was taken: %v", err)
	}
	release, err := l.Acquire(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	var fails error
	client.PrependReactor("update", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
		now = now.Add(9 * time.Second) // it takes its time
		return fails != nil, nil, fails
	})
	renew := func() { _ = l.taken.Load().update(t.Context(), "mine") }
	for _, step := range []struct {
		name   string
		pass   time.Duration
		do     func()
		lapsed bool
	}{
		{"as long as no other run may take it", 30*time.Second - 1, func() {}, false},
		{"then", 1, func() {}, true},
		{"renewed late", 0, renew, false},
		{"half a minute after that was sent", 21 * time.Second, func() {}, true},
		{"a renewal fails", 0, func() { fails = errors.New("busy"); renew() }, true},
		{"renewed again", 0, func() { fails = nil; renew() }, false},
	} {
		now = now.Add(step.pass)
		step.do()
		if err := l.Lapsed(); (err != nil) != step.lapsed || err != nil && !errors.Is(err, ipam.ErrAgain) {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	now = now.Add(time.Minute)
	other := NewLock(client.CoordinationV1(), ns, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	theirs, err := other.Acquire(t.Context(), "theirs")
	if err != nil {
		t.Fatal(err)
	}
	theirs()
	renew()
	if err := l.Lapsed(); err == nil || errors.Is(err, ipam.ErrAgain) {
		t.Errorf("after another run: %v, want that it is lost", err)
	}
	release()
}

// A lease without a holder is free, so no run may hold it without a name.
func TestHolderOfTheLockHasAName(t *testing.T) {
	client := fake.NewClientset()
	l := NewLock(client.CoordinationV1(), ns, time.Now, slog.New(slog.DiscardHandler))
	if _, err := l.Acquire(t.Context(), ""); err == nil || len(client.Actions()) > 0 {
		t.Errorf("Acquire = %v after %d requests, want an error and none", err, len(client.Actions()))
	}
}
