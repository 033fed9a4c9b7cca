package reserved_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// full has everything that a restoration could lose.
const full = `"metadata":{"labels":{"app":"web"},"annotations":{"example.com/note":"<a&b> ü"},"finalizers":["example.com/hold"],
	"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"0a"}]},
	"spec":{"pod":"db/web-0","ttl":"24h","ips":["10.1.0.4"],"serial":9007199254740993,"extra":{"x":1.50,"nil":null,"deep":{"y":[]}}},
	"status":{"ips":["10.1.0.4","fd00::4"],"deletedAt":"2026-01-02T15:04:05Z"}`

// restoreOne restores an object by a record of it.
func (s *scene) restoreOne(r *reservedips.Backend, record reaper.Record) error {
	s.Helper()
	errs := r.Restore(s.Context(), record.Pool, []reaper.Record{record})
	if len(errs) != 1 {
		s.Fatalf("%d answers to one record", len(errs))
	}
	return errs[0]
}

// listedAndGone writes an object, lists it and has it deleted.
func (s *scene) listedAndGone(p reservedips.Resource, fields string) reservedips.ReservedIP {
	s.Helper()
	s.write(p, "web-0", fields)
	r := s.reserved(p)
	before := s.only(r)
	s.must(r.Delete(s.Context(), before))
	if !s.gone(p, "web-0") {
		s.change(p, "web-0", []any{}, "metadata", "finalizers")
	}
	return before
}

// Promise 10.
func TestRestoredAllocationIsWhatItWas(t *testing.T) {
	for name, p := range map[string]reservedips.Resource{"of a namespace": spaced, "of the cluster": wide} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			before := s.listedAndGone(p, full)
			r := s.reserved(p)
			s.must(s.restoreOne(r, record(before)))
			after := s.only(r)
			if diff := cmp.Diff(s.settled(before.Stored), s.settled(after.Stored)); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, after, compareReserved); diff != "" {
				t.Errorf("List (-before +after):\n%s", diff)
			}
			if err := s.restoreOne(r, record(before)); !errors.Is(err, reaper.ErrPresent) {
				t.Errorf("Restore again = %v, want %v", err, reaper.ErrPresent)
			}
			if again := s.only(r); again.Token != after.Token {
				t.Error("restoring what is there wrote it")
			}
		})
	}
}

func TestEachRecordHasAnAnswer(t *testing.T) {
	s := newScene(t)
	for _, name := range []string{"web-0", "web-1", "web-2"} {
		s.write(spaced, name, `"spec":{"pod":"`+name+`"}`)
	}
	r := s.reserved(spaced)
	all := s.list(r)
	s.must(r.Delete(t.Context(), all[0]))
	s.must(r.Delete(t.Context(), all[2]))
	s.write(spaced, "web-2", `"spec":{"pod":"other"}`)
	errs := r.Restore(t.Context(), spacedPool, []reaper.Record{record(all[0]), record(all[1]), record(all[2])})
	if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], reaper.ErrPresent) || !errors.Is(errs[2], reaper.ErrTaken) {
		t.Errorf("Restore = %v, want back, present, taken", errs)
	}
}

func TestAllocationOfSomebodyElseIsNotTouched(t *testing.T) {
	s := newScene(t)
	before := s.listedAndGone(spaced, full)
	s.write(spaced, "web-0", `"spec":{"pod":"other"}`)
	r := s.reserved(spaced)
	theirs := s.only(r)
	uid, _, _ := strings.Cut(theirs.Token, "/")
	err := s.restoreOne(r, record(before))
	if !errors.Is(err, reaper.ErrTaken) || !strings.Contains(err.Error(), uid) {
		t.Errorf("Restore = %v, want %v with the uid %s", err, reaper.ErrTaken, uid)
	}
	if s.only(r).Token != theirs.Token {
		t.Error("it was written")
	}
}

// Promise 8. A crash between the two writes leaves an object without its status.
func TestStatusThatACrashLeftOutIsPutBack(t *testing.T) {
	s := newScene(t)
	before := s.listedAndGone(spaced, `"spec":{"pod":"web-0"},"status":{"ips":["10.1.0.4"]}`)
	s.write(spaced, "web-0", `"spec":{"pod":"web-0"}`)
	r := s.reserved(spaced)
	s.must(s.restoreOne(r, record(before)))
	if diff := cmp.Diff(s.settled(before.Stored), s.settled(s.only(r).Stored)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}

func TestStatusOfSomebodyElseIsNotTouched(t *testing.T) {
	s := newScene(t)
	before := s.listedAndGone(spaced, `"spec":{"pod":"web-0"},"status":{"ips":["10.1.0.4"]}`)
	s.write(spaced, "web-0", `"spec":{"pod":"web-0"},"status":{"ips":["10.1.0.5"]}`)
	r := s.reserved(spaced)
	theirs := s.only(r)
	err := s.restoreOne(r, record(before))
	if !errors.Is(err, reaper.ErrPresent) || !strings.Contains(err.Error(), "with another status") {
		t.Errorf("Restore = %v, want %v with another status", err, reaper.ErrPresent)
	}
	if s.only(r).Token != theirs.Token {
		t.Error("it was written")
	}
}

func TestRestoringWithoutTheRightToTheStatusSaysSo(t *testing.T) {
	s := newScene(t)
	before := s.listedAndGone(spaced, `"spec":{"pod":"web-0"},"status":{"ips":["10.1.0.4"]}`)
	may := map[string][]string{"reservedips": {"create", "get"}}
	limited := s.reservedAs(s.account("creator", may), spaced)
	err := s.restoreOne(limited, record(before))
	const want = "the object is back, but without its status: put reservedips/status: "
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("Restore = %v, want %s", err, want)
	}
	may["reservedips/status"] = []string{"update"}
	s.must(s.restoreOne(s.reservedAs(s.account("keeper", may), spaced), record(before)))
	if got := s.only(s.reserved(spaced)); len(got.IPs) != 1 {
		t.Errorf("restored %+v, want an address", got)
	}
}

func TestAllocationOfANamespaceThatIsGoneIsTaken(t *testing.T) {
	s := newScene(t)
	before := s.listedAndGone(spaced, `"spec":{"pod":"web-0"}`)
	r := record(before)
	r.Key = "nowhere/web-0"
	r.Stored = json.RawMessage(strings.Replace(string(r.Stored), s.namespace, "nowhere", 1))
	if err := s.restoreOne(s.reserved(spaced), r); !errors.Is(err, reaper.ErrTaken) {
		t.Errorf("Restore = %v, want %v", err, reaper.ErrTaken)
	}
}

func TestRecordOfAnotherPoolIsRefused(t *testing.T) {
	s := newScene(t)
	before := s.listedAndGone(spaced, `"spec":{"pod":"web-0"}`)
	errs := s.reserved(spaced, wide).Restore(t.Context(), widePool, []reaper.Record{record(before)})
	if len(errs) != 1 || errs[0] == nil || !strings.Contains(errs[0].Error(), "the record is of reservedIPs "+spacedPool) || !s.gone(spaced, "web-0") {
		t.Errorf("Restore = %v, want it refused", errs)
	}
}

// What no run wrote into a journal restores nothing.
func TestRecordsThatNoRunWroteAreRefused(t *testing.T) {
	s := newScene(t)
	before := s.listedAndGone(spaced, `"spec":{"pod":"web-0"}`)
	edit := func(was, now string) func(*reaper.Record) {
		return func(r *reaper.Record) { r.Stored = json.RawMessage(strings.Replace(string(r.Stored), was, now, 1)) }
	}
	for name, change := range map[string]func(*reaper.Record){
		"another backend":          func(r *reaper.Record) { r.Backend = "whereabouts" },
		"a resource not in policy": func(r *reaper.Record) { r.Pool = widePool },
		"another key":              func(r *reaper.Record) { r.Key = s.namespace + "/web-1" },
		"another namespace":        func(r *reaper.Record) { r.Key = "default/web-0" },
		"no namespace":             func(r *reaper.Record) { r.Key = "web-0" },
		"a way out":                func(r *reaper.Record) { r.Key = s.namespace + "/../web-0" },
		"another name":             edit(`"name":"web-0"`, `"name":"web-1"`),
		"another group":            edit("network.example.com/v1alpha1", "apps/v1"),
		"another kind":             edit(`"kind":"ReservedIP"`, `"kind":"Pod"`),
		"an unknown field":         edit(`"spec":{`, `"spec":{"future":1,`),
		"a field of a wrong type":  edit(`"pod":"web-0"`, `"pod":7`),
		"no metadata":              edit(`"metadata"`, `"other"`),
		"no object":                func(r *reaper.Record) { r.Stored = json.RawMessage(`[]`) },
		"nothing":                  func(r *reaper.Record) { r.Stored = nil },
		"half an object":           func(r *reaper.Record) { r.Stored = r.Stored[:len(r.Stored)/2] },
	} {
		t.Run(name, func(t *testing.T) {
			r := record(before)
			change(&r)
			err := s.restoreOne(s.reserved(spaced), r)
			if err == nil || errors.Is(err, reaper.ErrPresent) || errors.Is(err, reaper.ErrTaken) {
				t.Errorf("Restore = %v, want it refused", err)
			}
			if !s.gone(spaced, "web-0") {
				t.Error("something was written")
			}
		})
	}
}
