package kube_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// full has everything that a restore could lose.
const full = `"metadata":{"labels":{"app":"web"},"annotations":{"example.com/note":"<a&b> ü"},"finalizers":["example.com/hold"],
	"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"0a"}]},
	"spec":{"pod":"db/web-0","ttl":"24h","ips":["10.1.0.4"],"serial":9007199254740993,"extra":{"x":1.50,"nil":null,"deep":{"y":[]}}},
	"status":{"ips":["10.1.0.4","fd00::4"],"deletedAt":"2026-01-02T15:04:05Z"}`

// restoreOne restores an object from its record.
func (f *reservedFixture) restoreOne(r *reservedips.Backend, record ipam.Record) error {
	f.Helper()
	errs := r.Restore(f.Context(), record.Pool, []ipam.Record{record})
	if len(errs) != 1 {
		f.Fatalf("%d answers to one record", len(errs))
	}
	return errs[0]
}

// listedAndGone writes an object, lists it and deletes it.
func (f *reservedFixture) listedAndGone(p reservedips.Resource, fields string) reservedips.ReservedIP {
	f.Helper()
	f.write(p, "web-0", fields)
	r := f.reserved(p)
	before := f.only(r)
	if err := r.Delete(f.Context(), before); !errors.Is(err, ipam.ErrDeleting) {
		f.must(err)
	}
	if !f.gone(p, "web-0") {
		f.change(p, "web-0", []any{}, "metadata", "finalizers")
	}
	return before
}

// Promise 10.
func TestRestoredReservedIPIsWhatItWas(t *testing.T) {
	for name, p := range map[string]reservedips.Resource{"of a namespace": spaced, "of the cluster": wide} {
		t.Run(name, func(t *testing.T) {
			f := newReservedFixture(t)
			before := f.listedAndGone(p, full)
			r := f.reserved(p)
			f.must(f.restoreOne(r, record(before)))
			after := f.only(r)
			if diff := cmp.Diff(f.settled(before.Stored), f.settled(after.Stored)); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, after, compareReserved); diff != "" {
				t.Errorf("List (-before +after):\n%s", diff)
			}
			if err := f.restoreOne(r, record(before)); !errors.Is(err, ipam.ErrPresent) {
				t.Errorf("Restore again = %v, want %v", err, ipam.ErrPresent)
			}
			if again := f.only(r); again.Token != after.Token {
				t.Error("restoring what is there wrote it")
			}
		})
	}
}

func TestEachRecordHasAnAnswer(t *testing.T) {
	f := newReservedFixture(t)
	for _, name := range []string{"web-0", "web-1", "web-2", "web-3"} {
		f.write(spaced, name, `"spec":{"pod":"`+name+`"},"status":{"ips":["10.1.0.4"]}`)
	}
	r := f.reserved(spaced)
	all := f.list(r)
	for _, i := range []int{0, 2, 3} {
		f.must(r.Delete(t.Context(), all[i]))
	}
	f.write(spaced, "web-2", `"spec":{"pod":"other"}`)
	f.write(spaced, "web-3", `"spec":{"pod":"web-3"},"status":{"ips":["10.1.0.5"]}`)
	there := f.list(r)
	elsewhere := record(all[0])
	elsewhere.Key = "nowhere/web-0"
	elsewhere.Stored = json.RawMessage(strings.Replace(string(elsewhere.Stored), f.namespace, "nowhere", 1))
	errs := r.Restore(t.Context(), spacedPool, []ipam.Record{record(all[0]), record(all[1]), record(all[2]), record(all[3]), elsewhere})
	for i, want := range []error{nil, ipam.ErrPresent, ipam.ErrTaken, ipam.ErrPresent, ipam.ErrTaken} {
		if !errors.Is(errs[i], want) {
			t.Errorf("record %d: %v, want %v", i, errs[i], want)
		}
	}
	if errs[3] == nil || !strings.Contains(errs[3].Error(), "with a different status") {
		t.Errorf("%v, want that the status is another owner's", errs[3])
	}
	now := f.list(r)
	if len(now) != 4 {
		t.Fatalf("%d objects, want 4", len(now))
	}
	for i, was := range there {
		if now[i+1].Token != was.Token {
			t.Errorf("%s, which is there, was written", was.Key)
		}
	}
}

// Promise 8. A crash between the two writes leaves an object without its status, and so does an
// account that may not write it.
func TestStatusThatACrashLeftOutIsPutBack(t *testing.T) {
	f := newReservedFixture(t)
	before := f.listedAndGone(spaced, `"spec":{"pod":"web-0"},"status":{"ips":["10.1.0.4"]}`)
	err := f.restoreOne(f.forbidden("update reservedips/status"), record(before))
	const want = "the object is back, but without its status: put reservedips/status: "
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("Restore = %v, want %s", err, want)
	}
	r := f.reserved(spaced)
	if got := f.only(r); len(got.IPs) > 0 {
		t.Errorf("restored %+v, want no address", got)
	}
	f.must(f.restoreOne(r, record(before)))
	if diff := cmp.Diff(f.settled(before.Stored), f.settled(f.only(r).Stored)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}

// Records that no run wrote restore nothing.
func TestRecordsThatNoRunWroteAreRefused(t *testing.T) {
	f := newReservedFixture(t)
	before := f.listedAndGone(spaced, `"spec":{"pod":"web-0"}`)
	edit := func(was, now string) func(*ipam.Record) {
		return func(r *ipam.Record) { r.Stored = json.RawMessage(strings.Replace(string(r.Stored), was, now, 1)) }
	}
	for name, change := range map[string]func(*ipam.Record){
		"another backend":          func(r *ipam.Record) { r.Backend = "whereabouts" },
		"a resource not in policy": func(r *ipam.Record) { r.Pool = widePool },
		"another key":              func(r *ipam.Record) { r.Key = f.namespace + "/web-1" },
		"a way out":                func(r *ipam.Record) { r.Key = f.namespace + "/../web-0" },
		"another name":             edit(`"name":"web-0"`, `"name":"web-1"`),
		"another kind":             edit(`"kind":"ReservedIP"`, `"kind":"Pod"`),
		"an unknown field":         edit(`"spec":{`, `"spec":{"future":1,`),
		"nothing":                  func(r *ipam.Record) { r.Stored = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := record(before)
			change(&r)
			err := f.restoreOne(f.reserved(spaced), r)
			if err == nil || errors.Is(err, ipam.ErrPresent) || errors.Is(err, ipam.ErrTaken) {
				t.Errorf("Restore = %v, want it refused", err)
			}
			if !f.gone(spaced, "web-0") {
				t.Error("something was written")
			}
		})
	}
}
