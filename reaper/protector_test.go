package reaper_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// reservedIPsName is the name of a fakeProtector, and fakeResource begins the names of its objects.
const (
	reservedIPsName = "reservedIPs"
	fakeResource    = "reservedips.v1.example.com"
)

// A fakeProtector is a protector in memory.
type fakeProtector struct {
	objects []ipam.Protection
	broken  error // if they cannot be listed
}

func (*fakeProtector) Name() string { return reservedIPsName }

func (p *fakeProtector) Protections(context.Context) ([]ipam.Protection, error) {
	return slices.Clone(p.objects), p.broken
}

// hours returns a TTL of n hours.
func hours(n int) *time.Duration {
	ttl := time.Duration(n) * time.Hour
	return &ttl
}

// protecting returns an object ns/key that protects these addresses.
func protecting(key string, ttl *time.Duration, ips ...netip.Addr) ipam.Protection {
	return ipam.Protection{Name: fakeResource + " ns/" + key, IPs: ips, TTL: ttl}
}

// protectingPod returns an object ns/key that protects all addresses of the pod.
func protectingPod(key string, ttl *time.Duration, pod string) ipam.Protection {
	o := protecting(key, ttl)
	o.Pod = app(pod).Pod
	return o
}

// protectedHarness returns a harness with these objects. The pod live-1 exists and has 10.0.0.1. The
// pod gone-1 does not exist and had 10.0.0.2.
func protectedHarness(t *testing.T, objects ...ipam.Protection) (*harness, *backendtest.Memory, *fakeProtector) {
	t.Helper()
	m, p := backendtest.NewMemory("memory"), &fakeProtector{objects: objects}
	h := newHarness(m.Backend())
	h.protectors = []ipam.Protector{p}
	h.addPods(t, m, "live-1", "gone-1")
	return h, m, p
}

// entryOf returns the report's entry with that key.
func entryOf(t *testing.T, r report.Report, key string) report.Entry {
	t.Helper()
	i := slices.IndexFunc(r.Entries, func(e report.Entry) bool { return e.Key == key })
	if i < 0 {
		t.Fatalf("the report has no entry %s: %+v", key, r.Entries)
	}
	return r.Entries[i]
}

// reported returns the decision of the report's entry with that key.
func reported(t *testing.T, r report.Report, key string) decision {
	t.Helper()
	e := entryOf(t, r, key)
	return decision{e.Verdict, e.Reason, e.Note}
}
