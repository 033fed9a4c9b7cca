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

func TestReservedIPThatIsGoneIsDeleted(t *testing.T) {
	f := newReservedFixture(t)
	f.write(spaced, "web-0", `"spec":{"pod":"web-0"}`)
	r := f.reserved(spaced)
	listed := f.only(r)
	f.remove(spaced, "web-0")
	if err := r.Delete(t.Context(), listed); err != nil {
		t.Errorf("Delete = %v, want nil", err)
	}
}

// Promise 4. An object that has changed in any way since it was listed stays.
func TestReservedIPThatChangedIsNotDeleted(t *testing.T) {
	for name, change := range map[string]func(*reservedFixture){
		"its spec": func(f *reservedFixture) { f.change(spaced, "web-0", "48h", "spec", "ttl") },
		"all of it, back to what it was": func(f *reservedFixture) {
			f.change(spaced, "web-0", "48h", "spec", "ttl")
			f.change(spaced, "web-0", "24h", "spec", "ttl")
		},
		"it is another one": func(f *reservedFixture) {
			f.remove(spaced, "web-0")
			f.write(spaced, "web-0", `"spec":{"pod":"web-0","ttl":"24h"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newReservedFixture(t)
			f.write(spaced, "web-0", `"spec":{"pod":"web-0","ttl":"24h"}`)
			r := f.reserved(spaced)
			listed := f.only(r)
			change(f)
			if err := r.Delete(t.Context(), listed); !errors.Is(err, ipam.ErrChanged) {
				t.Errorf("Delete = %v, want %v", err, ipam.ErrChanged)
			}
			if f.gone(spaced, "web-0") {
				t.Error("it was deleted")
			}
		})
	}
}

func TestWithoutATokenNothingIsDeleted(t *testing.T) {
	f := newReservedFixture(t)
	f.write(spaced, "web-0", `"spec":{"pod":"web-0"}`)
	r := f.reserved(spaced)
	listed := f.only(r)
	uid, version, _ := strings.Cut(listed.Token, "/")
	for _, token := range []string{"", "/", uid, uid + "/", "/" + version} {
		forged := listed
		forged.Token = token
		if err := r.Delete(t.Context(), forged); err == nil || f.gone(spaced, "web-0") {
			t.Errorf("Delete with the token %q = %v, want an error", token, err)
		}
	}
}

func TestFinalizersDelayADeletion(t *testing.T) {
	f := newReservedFixture(t)
	f.write(spaced, "web-0", `"metadata":{"finalizers":["example.com/hold"]},"spec":{"pod":"web-0"}`)
	r := f.reserved(spaced)
	before := f.only(r)
	f.must(r.Delete(t.Context(), before))
	f.must(r.Delete(t.Context(), f.only(r))) // the next run
	if f.gone(spaced, "web-0") {
		t.Fatal("the finalizer was passed over")
	}
	err := r.Restore(t.Context(), before.Pool, []ipam.Record{record(before)})[0]
	const want = `the object is still being deleted and waits for the finalizers ["example.com/hold"]`
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

	mayList := f.reservedAs(f.account("lister", rule(group, "reservedips", "list")), spaced)
	if err := mayList.Delete(t.Context(), listed); err == nil || errors.Is(err, ipam.ErrAgain) || !strings.Contains(err.Error(), "forbidden") {
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
