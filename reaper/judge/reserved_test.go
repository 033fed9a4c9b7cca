package judge_test

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// objects are a protector.
type objects struct {
	all    []ipam.Protection
	broken error // if they cannot be listed
}

// reservedPool begins the names of objects.
const reservedPool = "reservedips.v1.example.com"

func (objects) Name() string { return "reservedIPs" }

func (o objects) Protections(context.Context) ([]ipam.Protection, error) {
	return slices.Clone(o.all), o.broken
}

// hours returns a TTL of n hours.
func hours(n int) *time.Duration {
	ttl := time.Duration(n) * time.Hour
	return &ttl
}

// protecting returns an object ns/key that protects these addresses.
func protecting(key string, ttl *time.Duration, ips ...netip.Addr) ipam.Protection {
	return ipam.Protection{Name: reservedPool + " ns/" + key, IPs: ips, TTL: ttl}
}

// protectingPod returns an object ns/key that protects all addresses of the pod.
func protectingPod(key string, ttl *time.Duration, pod string) ipam.Protection {
	o := protecting(key, ttl)
	o.Pod = ipam.PodRef{Namespace: "default", Name: pod}
	return o
}

// podDeletedAt returns the object with the time at which the pod was deleted.
func podDeletedAt(o ipam.Protection, at time.Time) ipam.Protection {
	o.Deleted = at
	return o
}

// reservedSequence returns a sequence without a grace period, in which these objects protect the
// addresses of a store. The pod live-1 exists and has 10.0.0.1, allocation 1. The pod gone-1 does
// not exist and had 10.0.0.2, allocation 2.
func reservedSequence(protections ...ipam.Protection) *sequence {
	var as []ipam.Allocation
	for i, name := range []string{"live-1", "gone-1"} {
		as = append(as, ipam.Allocation{
			Key: fmt.Sprint(i + 1), IP: ip(byte(i + 1)), Token: "t1",
			Owner: ipam.Owner{Pod: ipam.PodRef{Namespace: "default", Name: name}, Sandbox: "sandbox-" + name, Interface: "net1"},
		})
	}
	w := newSequence(fixedStore{poolOf(as...)})
	w.objects.all = protections
	releaseNow(&w.policy)
	w.lists.Pods = append(w.lists.Pods, showing(as[0].Owner.Pod, as[0].IP))
	return w
}

// keyed returns the decision on the allocation with that key.
func keyed(t *testing.T, decisions []judge.Decision, key string) judge.Decision {
	t.Helper()
	for _, d := range decisions {
		if d.Allocation.Key == key {
			return d
		}
	}
	t.Fatalf("no decision on %s", key)
	return judge.Decision{}
}

// A brokenStore yields an error in place of pools.
type brokenStore struct {
	namedStore
	err error
}

func (s brokenStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) { yield(ipam.Pool{}, s.err) }
}

// errForbidden is the error of a store that refuses to be listed.
var errForbidden = fmt.Errorf("%w: pods is forbidden", ipam.ErrRefused)
