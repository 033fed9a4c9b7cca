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
	r := &release{b, ws, make([]ipam.Allocation, len(ws)), make([]error, len(ws))}
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
	for _, c := range r.containers(s) {
		if err := r.refusal(ctx, s, c); err != nil {
			r.set(c.members, err)
			continue
		}
		err := b.cns.assign(ctx, pathRelease, assignmentOf(c.address, r.ips(c.members)))
		for _, i := range c.members {
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

// A container is one whose addresses are being released.
type container struct {
	address *address // one of them
	members []int    // the indices of their warrants
}

// containers compares the allocations with what CNS has now. It returns those that are still as
// listed, by container.
func (r *release) containers(s *state) []*container {
	now := make(map[string]*address)
	for _, a := range s.addresses {
		if !a.held() {
			now[a.ip.String()] = a
		}
	}
	var all []*container
	for i, listed := range r.allocations {
		a := now[listed.Key]
		switch {
		case r.errs[i] != nil:
			continue
		case a == nil:
			r.errs[i] = r.absence(s, listed)
			continue
		case s.token(a) != listed.Token:
			r.errs[i] = fmt.Errorf("%w: CNS has it for container %s since %s", ipam.ErrChanged, a.container, a.Changed)
			continue
		}
		at := slices.IndexFunc(all, func(c *container) bool { return c.address.key == a.key })
		if at < 0 {
			at = len(all)
			all = append(all, &container{address: a})
		}
		all[at].members = append(all[at].members, i)
	}
	return all
}

// absence returns nil if the address is free in CNS or no longer there.
func (r *release) absence(s *state, listed ipam.Allocation) error {
	for _, a := range s.addresses {
		if a.ip == listed.IP && (a.unreadable != "" || a.State != available) {
			return fmt.Errorf("%w: %s", ipam.ErrChanged, cmp.Or(a.unreadable, a.State))
		}
	}
	return nil
}

// refusal returns why a container's addresses must not be released. It is called right before
// the request.
func (r *release) refusal(ctx context.Context, s *state, c *container) error {
	ips := r.ips(c.members)
	for _, id := range s.keys[c.address.key] {
		if sibling := s.byID[id]; !slices.Contains(ips, sibling.ip.String()) {
			why := ipam.ErrKept
			if slices.ContainsFunc(r.errs, func(err error) bool { return errors.Is(err, ipam.ErrAgain) }) {
				why = ipam.ErrAgain
			}
			return fmt.Errorf("%w: CNS would also free %s, which has no warrant", why, sibling.ip)
		}
	}
	keep, err := r.otherInterface(ctx, c.address)
	if err != nil {
		return err
	}
	if keep != "" {
		return fmt.Errorf("%w: %s", ipam.ErrKept, keep)
	}
	for _, i := range c.members {
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
			r.errs[i] = cmp.Or(answer, errors.New("CNS reported success, but still has it"))
		}
	}
}

// has reports whether an address still belongs to the container it was listed for.
func (s *state) has(listed ipam.Allocation) bool {
	return slices.ContainsFunc(s.addresses, func(a *address) bool {
		return a.ip == listed.IP && (a.unreadable != "" || a.State == assigned && a.container == listed.Owner.Sandbox)
	})
}

// set sets the error of some warrants.
func (r *release) set(members []int, err error) {
	for _, i := range members {
		r.errs[i] = err
	}
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
	return assignment{Addresses: ips, Interface: a.Owner.Interface, Container: a.Owner.Container, Pod: a.Owner.pod, Name: "eth0"}
}
