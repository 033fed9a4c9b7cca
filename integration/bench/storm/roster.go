package storm

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A finding is something that must not happen. When all workers are done, judge decides whether the
// plugin itself is the reason.
type finding struct {
	at   time.Time
	of   *sandbox
	what fact   // what its ADD got; none if its kind is empty
	want string // the owner that the store must name
	had  string // the owner that it named; empty if there was no such fact

	shared *sandbox // who else got the address of the sandbox, if that is the finding
	broken string   // what the store said that no store should say
}

// A roster lists the present sandboxes: those with their ADD's answer, until their DEL or the
// deletion of their pod begins. Its methods may be called concurrently.
type roster struct {
	mu       sync.Mutex
	present  map[*sandbox]bool
	findings []finding
	known    map[string]bool // so that each finding is recorded once
	checked  int             // sandboxes, in all looks
}

func newRoster() *roster {
	return &roster{present: map[*sandbox]bool{}, known: map[string]bool{}}
}

// arrived records that the sandbox has its address, which no other sandbox may have.
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

// leaves records that the sandbox is about to go.
func (r *roster) leaves(s *sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.present, s)
}

// there returns the present sandboxes.
func (r *roster) there() []*sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*sandbox
	for s := range r.present {
		all = append(all, s)
	}
	return all
}

// check compares a view with what is owed to sandboxes that were present before the look and still
// are. A tombstone in a reservation that still records its owner blocks the address just as well;
// it is the reaper's way of asking again. Only if quiet, when no reaper runs, it should be gone.
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

// note records a new finding. The caller holds mu.
func (r *roster) note(f finding) {
	key := fmt.Sprintf("%p %v %p %s", f.of, f.what, f.shared, f.broken)
	if !r.known[key] {
		r.known[key] = true
		r.findings = append(r.findings, f)
	}
}

// all returns the findings so far, in order.
func (r *roster) all() []finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.findings)
}

// String names the sandbox, such as "pod-1-7/3f2a…".
func (s *sandbox) String() string { return s.pod + "/" + s.id[:8] }
