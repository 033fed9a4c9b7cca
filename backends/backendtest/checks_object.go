package backendtest

import (
	"errors"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 2, 9. An object outside the pools that cannot be decoded is an *ObjectError. It
// protects what it may name and nothing else, and every entry is listed.
func obscureObject(s *fixture) {
	obscurer, ok := s.store.(Obscurer)
	if !ok {
		s.Skip("the harness is not an Obscurer")
	}
	named := make(map[string]bool) // by Place: whether the object may name it
	for _, e := range s.leak("a", "a-1", "a-2") {
		named[Place(e.Allocation)] = true
	}
	for _, e := range s.leak("b", "b-1") {
		named[Place(e.Allocation)] = false
	}
	if err := obscurer.Obscure("a"); err != nil {
		s.Fatal(err)
	}
	told, listed := false, 0
	for pool, err := range s.store.Backend().List(s.Context()) {
		var undecoded *ipam.ObjectError
		switch {
		case errors.As(err, &undecoded):
			told = true
		case err != nil:
			s.Errorf("list: %v", err)
		}
		for _, a := range pool.Allocations {
			a.Pool = pool.Name
			want, ok := named[Place(a)]
			if !ok || a.EmptyHandle {
				continue
			}
			listed++
			if (a.Protected != "") != want {
				s.Errorf("%s is protected by %q, want it protected: %v", Place(a), a.Protected, want)
			}
		}
	}
	if !told || listed != len(named) {
		s.Errorf("%d of %d entries are listed, and an *ObjectError: %v", listed, len(named), told)
	}
}
