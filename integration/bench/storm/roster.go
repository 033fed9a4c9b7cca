package storm

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A finding is something that must not be. Whether the plugin itself is the
// reason is judged when all workers are done.
type finding struct {
	at   time.Time
	of   *sandbox
	what fact   // that its ADD got; nothing of the sort if its kind is empty
	want string // the owner that the store has to name
	had  string // the owner that it named, empty if there was no such fact

	shared *sandbox // who was given the address of the sandbox, if that is it
	broken string   // what the store said that no store should say
}

// A roster lists the pods that are there, which are those that have got their ADD's answer, until
// their DEL or their deletion begins. Its methods may be called concurrently.
type roster struct {
	mu       sync.Mutex
	present  map[*sandbox]bool
	findings []finding
	known    map[string]bool // findings, so that each is noted once
	checked  int             // sandboxes, in all looks
}

func newRoster() *roster {
	return &roster{present: map[*sandbox]bool{}, known: map[string]bool{}}
}

// arrived notes that the sandbox has its address, which no other sandbox may have.
func (r *roster) arrived(s *sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other := range r.present {
		if other.ip == s.ip {
			r.note(finding{at: time.Now(), of: other, shared: s})
		}
	}
	r.present[s] = true
}

// leaves notes that the sandbox is about to go.
func (r *roster) leaves(s *sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.present, s)
}

// there returns who is there.
func (r *roster) there() []*sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*sandbox
	for s := range r.present {
		all = append(all, s)
	}
	return all
}

// check compares a view with what is owed to those who were there before the look
// and are there still. A tombstone over a reservation that names its owner beside
// it blocks the address as well as the name would; it is the reaper's way of
// asking once more, and only quiet, when no reaper runs, says that it ought to be
// gone.
func (r *roster) check(i ipam, before []*sandbox, v view, quiet bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, text := range v.broken {
		r.note(finding{at: now, broken: text})
	}
	for _, s := range before {
		if !r.present[s] {
			continue
		}
		r.checked++
		for what, want := range i.owed(s) {
			had := v.owners[what]
			switch {
			case had == want:
			case !quiet && v.retiring[what] == want:
			default:
				r.note(finding{at: now, of: s, what: what, want: want, had: had})
			}
		}
	}
}

// note keeps a finding that is new. The caller holds mu.
func (r *roster) note(f finding) {
	key := fmt.Sprintf("%p %v %p %s", f.of, f.what, f.shared, f.broken)
	if !r.known[key] {
		r.known[key] = true
		r.findings = append(r.findings, f)
	}
}

// all returns the findings so far, in the order in which they were made.
func (r *roster) all() []finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.findings)
}

// String names the sandbox, as in "pod-1-7/3f2a…".
func (s *sandbox) String() string { return s.pod + "/" + s.id[:8] }
