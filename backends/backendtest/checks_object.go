package backendtest

import (
	"errors"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 9. An object outside the pools that cannot be decoded is an *ObjectError, and every entry is
// listed.
func obscureObject(s *fixture) {
	obscurer, ok := s.store.(Obscurer)
	if !ok {
		s.Skip("the harness is not an Obscurer")
	}
	leaked := make(map[string]bool) // by Place
	for _, e := range slices.Concat(s.leak("a", "a-1", "a-2"), s.leak("b", "b-1")) {
		leaked[Place(e.Allocation)] = true
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
			if leaked[Place(a)] && !a.EmptyHandle {
				listed++
			}
		}
	}
	if !told || listed != len(leaked) {
		s.Errorf("%d of %d entries are listed, and an *ObjectError: %v", listed, len(leaked), told)
	}
}
