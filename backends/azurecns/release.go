package azurecns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Release implements ipam.Backend with one request for each container. CNS compares nothing,
// and frees everything the container has. So all of the container's addresses must be as
// listed, and must have warrants. An address that has gone to another container since is safe:
// CNS frees by the ID of the old one.
func (b *Backend) Release(ctx context.Context, ws []ipam.Warrant) []error {
	r := &release{
		Backend:     b,
		warrants:    ws,
		allocations: make([]ipam.Allocation, len(ws)),
		errs:        make([]error, len(ws)),
	}
	for i, w := range ws {
		r.allocations[i], r.errs[i] = w.Allocation()
	}
	s, err := b.cns.state(ctx)
	if err != nil {
		for i := range ws {
			r.errs[i] = cmp.Or(r.errs[i], err)
		}
		return r.errs
	}
	answers := make(map[int]error) // of CNS, by warrant index
	for _, members := range r.unchanged(s) {
		a := s.byIP[r.allocations[members[0]].IP]
		if err := r.refusal(ctx, s, a, members); err != nil {
			for _, i := range members {
				r.errs[i] = err
			}
			continue
		}
		err := b.cns.assign(ctx, pathRelease, assignmentOf(a, r.ips(members)))
		for _, i := range members {
			answers[i] = err
		}
	}
	r.verify(ctx, answers)
	return r.errs
}

// A release is one call of Backend.Release.
type release struct {
	*Backend
	warrants    []ipam.Warrant
	allocations []ipam.Allocation
	errs        []error
}

// unchanged returns the indices of the warrants whose allocations are as listed, by container. It
// answers for the others: an address that is free in CNS, or no longer there, is released.
func (r *release) unchanged(s *state) [][]int {
	var same []int
	for i, listed := range r.allocations {
		a := s.byIP[listed.IP]
		switch {
		case r.errs[i] != nil, a == nil, a.unreadable == "" && a.State == available:
		case a.held():
			r.errs[i] = fmt.Errorf("%w: %s", ipam.ErrChanged, cmp.Or(a.unreadable, a.State))
		case s.token(a) != listed.Token:
			r.errs[i] = fmt.Errorf("%w: CNS has it for container %s since %s", ipam.ErrChanged, a.container, a.Changed)
		default:
			same = append(same, i)
		}
	}
	return ipam.ByPool(same, func(i int) string { return s.byIP[r.allocations[i].IP].key })
}

// refusal returns why the addresses of a container must not be released; a is one of them. It is
// called right before the request.
func (r *release) refusal(ctx context.Context, s *state, a *address, members []int) error {
	ips := r.ips(members)
	for _, id := range s.keys[a.key] {
		if sibling := s.byID[id]; !slices.Contains(ips, sibling.ip.String()) {
			why := ipam.ErrKept
			if slices.ContainsFunc(r.errs, func(err error) bool { return errors.Is(err, ipam.ErrAgain) }) {
				why = ipam.ErrAgain
			}
			return fmt.Errorf("%w: CNS would also free %s, which has no warrant", why, sibling.ip)
		}
	}
	keep, err := r.otherInterface(ctx, a)
	if err != nil {
		return err
	}
	if keep != "" {
		return fmt.Errorf("%w: %s", ipam.ErrKept, keep)
	}
	for _, i := range members {
		if _, err := r.warrants[i].Allocation(); err != nil {
			return err
		}
	}
	return nil
}

// verify checks what became of the allocations whose release CNS has answered. The answer alone
// proves nothing: CNS reports success for a container that it does not know.
func (r *release) verify(ctx context.Context, answers map[int]error) {
	if len(answers) == 0 {
		return
	}
	// A run that is being stopped still finds out what it has released.
	s, err := r.cns.state(context.WithoutCancel(ctx))
	for i, answer := range answers {
		if err != nil {
			r.errs[i] = fmt.Errorf("%w: %w, and CNS may or may not have released it: %w", ipam.ErrAgain, ipam.ErrLost, cmp.Or(answer, err))
			continue
		}
		if s.has(r.allocations[i]) {
			r.errs[i] = ipam.Begun(cmp.Or(answer, errors.New("CNS reported success, but still has it")))
		}
	}
}

// has reports whether an address still belongs to the container it was listed for.
func (s *state) has(listed ipam.Allocation) bool {
	a := s.byIP[listed.IP]
	return a != nil && (a.unreadable != "" || a.State == assigned && a.container == listed.Owner.Sandbox)
}

// ips returns the addresses of some warrants.
func (r *release) ips(members []int) []string {
	var ips []string
	for _, i := range members {
		ips = append(ips, r.allocations[i].Key)
	}
	return ips
}

// assignmentOf returns a request for addresses of an address's container. In a release, CNS
// ignores the addresses.
func assignmentOf(a *address, ips []string) assignment {
	return assignment{
		Addresses: ips,
		Interface: a.Owner.Interface,
		Container: a.Owner.Container,
		Pod:       a.Owner.pod,
		Name:      "eth0",
	}
}
