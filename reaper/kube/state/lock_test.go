package state

import (
	"log/slog"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// Who gets and keeps the lease is tested on a real API server, in integration/run/kube. These
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

// A lease without a holder is free, so no run may hold it without a name.
func TestHolderOfTheLockHasAName(t *testing.T) {
	client := fake.NewClientset()
	l := NewLock(client.CoordinationV1(), ns, time.Now, slog.New(slog.DiscardHandler))
	if _, err := l.Acquire(t.Context(), ""); err == nil || len(client.Actions()) > 0 {
		t.Errorf("Acquire = %v after %d requests, want an error and none", err, len(client.Actions()))
	}
}
