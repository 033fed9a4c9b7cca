package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A finding is something that must not be. Whether the plugin itself is the
// reason is judged when everybody has said what they did.
type finding struct {
	at   time.Time
	of   *sandbox
	what fact   // that its ADD got; nothing of the sort if its kind is empty
	want string // the owner that the store has to name
	had  string // the owner that it named, empty if there was no such fact

	shared *sandbox // who was given the address of the sandbox, if that is it
	broken string   // what the store said that no store should say
}

// A town is who is there: the pods that have got their ADD's answer, until
// their DEL or their deletion begins. Its methods may be called concurrently.
type town struct {
	mu       sync.Mutex
	settled  map[*sandbox]bool
	findings []finding
	known    map[string]bool // findings, so that each is noted once
	retiring map[fact]bool   // allocations of somebody settled that were seen under a tombstone
	looks    int
	checked  int // sandboxes, in all looks
}

func newTown() *town {
	return &town{settled: map[*sandbox]bool{}, known: map[string]bool{}, retiring: map[fact]bool{}}
}

// moveIn notes that the sandbox has its address, which nobody else may have.
func (t *town) moveIn(s *sandbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other := range t.settled {
		if other.ip == s.ip {
			t.note(finding{at: time.Now(), of: other, shared: s})
		}
	}
	t.settled[s] = true
}

// moveOut notes that the sandbox is about to go.
func (t *town) moveOut(s *sandbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.settled, s)
}

// there returns who is there.
func (t *town) there() []*sandbox {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*sandbox
	for s := range t.settled {
		all = append(all, s)
	}
	return all
}

// check compares a view with what is owed to those who were there before the look
// and are there still. A tombstone over a allocation that names its owner beside
// it blocks the address as well as the name would; it is the reaper's way of
// asking once more, and only quiet, when no reaper runs, says that it ought to be
// gone.
func (t *town) check(i ipam, before []*sandbox, v view, quiet bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.looks++
	for _, text := range v.broken {
		t.note(finding{at: now, broken: text})
	}
	for _, s := range before {
		if !t.settled[s] {
			continue
		}
		t.checked++
		for what, want := range i.owed(s) {
			had := v.owners[what]
			switch {
			case had == want:
			case !quiet && v.retiring[what] == want:
				t.retiring[what] = true
			default:
				t.note(finding{at: now, of: s, what: what, want: want, had: had})
			}
		}
	}
}

// note keeps a finding that is new. The caller holds mu.
func (t *town) note(f finding) {
	key := fmt.Sprintf("%p %v %p %s", f.of, f.what, f.shared, f.broken)
	if !t.known[key] {
		t.known[key] = true
		t.findings = append(t.findings, f)
	}
}

// all returns the findings so far, in the order in which they were made.
func (t *town) all() []finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.findings)
}

// String names the sandbox, as in "pod-1-7/3f2a…".
func (s *sandbox) String() string { return s.pod + "/" + s.id[:8] }
