package kube_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

func TestReservedIPIsDeletedAsItWasListed(t *testing.T) {
	for name, p := range map[string]reservedips.Resource{"of a namespace": spaced, "of the cluster": wide} {
		t.Run(name, func(t *testing.T) {
			f := newReservedFixture(t)
			f.write(p, "web-0", `"spec":{"pod":"db/web-0"}`)
			f.write(p, "web-1", `"spec":{"pod":"db/web-1"}`)
			r := f.reserved(p)
			f.must(r.Delete(t.Context(), f.list(r)[0]))
			if !f.gone(p, "web-0") || f.gone(p, "web-1") {
				t.Error("not web-0, or not only that, was deleted")
			}
		})
	}
}

// Promise 4. An object that has changed in any way since it was listed stays. One that is gone
// counts as deleted.
func TestReservedIPThatChangedIsNotDeleted(t *testing.T) {
	forge := func(token func(uid, version string) string) func(*reservedFixture, *reservedips.ReservedIP) {
		return func(_ *reservedFixture, listed *reservedips.ReservedIP) {
			uid, version, _ := strings.Cut(listed.Token, "/")
			listed.Token = token(uid, version)
		}
	}
	for name, tt := range map[string]struct {
		change func(f *reservedFixture, listed *reservedips.ReservedIP)
		want   error // nil for any
		gone   bool
	}{
		"its spec": {func(f *reservedFixture, _ *reservedips.ReservedIP) { f.change(spaced, "web-0", "48h", "spec", "ttl") }, ipam.ErrChanged, false},
		"all of it, back to what it was": {func(f *reservedFixture, _ *reservedips.ReservedIP) {
			f.change(spaced, "web-0", "48h", "spec", "ttl")
			f.change(spaced, "web-0", "24h", "spec", "ttl")
		}, ipam.ErrChanged, false},
		"it is another one": {func(f *reservedFixture, _ *reservedips.ReservedIP) {
			f.remove(spaced, "web-0")
			f.write(spaced, "web-0", `"spec":{"pod":"web-0","ttl":"24h"}`)
		}, ipam.ErrChanged, false},
		"it is gone": {func(f *reservedFixture, _ *reservedips.ReservedIP) { f.remove(spaced, "web-0") }, nil, true},

		"no token":                        {forge(func(string, string) string { return "" }), nil, false},
		"a token of nothing":              {forge(func(string, string) string { return "/" }), nil, false},
		"a token without a version":       {forge(func(uid, _ string) string { return uid + "/" }), nil, false},
		"a token that is only a UID":      {forge(func(uid, _ string) string { return uid }), nil, false},
		"a token that has only a version": {forge(func(_, version string) string { return "/" + version }), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newReservedFixture(t)
			f.write(spaced, "web-0", `"spec":{"pod":"web-0","ttl":"24h"}`)
			r := f.reserved(spaced)
			listed := f.only(r)
			tt.change(f, &listed)
			if err := r.Delete(t.Context(), listed); (err == nil) != tt.gone || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Delete = %v, want %v, and no error only if it is gone", err, tt.want)
			}
			if f.gone(spaced, "web-0") != tt.gone {
				t.Error("it was deleted")
			}
		})
	}
}

func TestFinalizersDelayADeletion(t *testing.T) {
	f := newReservedFixture(t)
	f.write(spaced, "web-0", `"metadata":{"finalizers":["example.com/hold"]},"spec":{"pod":"web-0"}`)
	r := f.reserved(spaced)
	before := f.only(r)
	const want = "it is being deleted, and waits for the finalizers example.com/hold"
	if err := r.Delete(t.Context(), before); !errors.Is(err, ipam.ErrDeleting) || !strings.Contains(err.Error(), want) {
		t.Errorf("Delete = %v, want %s", err, want)
	}
	if got := f.only(r).Deleting; got != want {
		t.Errorf("the next run lists it as %q, want %s", got, want)
	}
	if f.gone(spaced, "web-0") {
		t.Fatal("the finalizer was passed over")
	}
	err := r.Restore(t.Context(), before.Pool, []ipam.Record{record(before)})[0]
	if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ipam.ErrPresent) {
		t.Errorf("Restore = %v, want %s", err, want)
	}
	f.change(spaced, "web-0", []any{}, "metadata", "finalizers")
	if !f.gone(spaced, "web-0") {
		t.Error("it is still there")
	}
}

func TestFailuresOfADeletionThatPassAreToldFromThoseThatStay(t *testing.T) {
	f := newReservedFixture(t)
	f.write(spaced, "web-0", `"spec":{"pod":"web-0"}`)
	listed := f.only(f.reserved(spaced))

	if err := f.forbidden("delete reservedips").Delete(t.Context(), listed); err == nil || errors.Is(err, ipam.ErrAgain) || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("Delete without the right = %v, want it forbidden for good", err)
	}
	if err := f.reserved(wide).Delete(t.Context(), listed); err == nil || !strings.Contains(err.Error(), "is not one of the policy's backends.reservedIPs.resources") {
		t.Errorf("Delete of what the policy does not name = %v, want an error", err)
	}
	nowhere := rest.CopyConfig(f.Config)
	nowhere.Host = "https://127.0.0.1:1"
	if err := f.reservedAs(nowhere, spaced).Delete(t.Context(), listed); !errors.Is(err, ipam.ErrAgain) {
		t.Errorf("Delete without an API server = %v, want %v", err, ipam.ErrAgain)
	}
	if f.gone(spaced, "web-0") {
		t.Error("it was deleted")
	}
}
