package azurecns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Compare implements ipam.Backend.
func (b *Backend) Compare(ctx context.Context, _ string, rs []ipam.Record) []error {
	_, errs := b.compare(ctx, rs)
	return errs
}

// Restore implements ipam.Backend with one request for each container: CNS gives a container
// all the addresses that it asks for, if they are free, or none. If CNS keeps a record of the
// interfaces of a container, a second request puts that back.
func (b *Backend) Restore(ctx context.Context, _ string, rs []ipam.Record) []error {
	free, errs := b.compare(ctx, rs)
	answers := make(map[string]error) // of CNS, by container
	for _, members := range ipam.ByPool(slices.Sorted(maps.Keys(free)), func(i int) string { return free[i].key }) {
		var ips []string
		for _, i := range members {
			ips = append(ips, free[i].IP) // CNS compares strings
		}
		k := free[members[0]]
		answers[k.key] = b.restore(ctx, k, ips)
	}
	if len(answers) == 0 {
		return errs
	}
	s, err := b.cns.state(context.WithoutCancel(ctx))
	for i, k := range free {
		answer := answers[k.key]
		if err != nil {
			errs[i] = fmt.Errorf("CNS may or may not have assigned it again: %w", cmp.Or(answer, err))
			continue
		}
		errs[i] = outcome(answer, s.place(k))
	}
	return errs
}

// restore assigns free addresses to their container again.
func (b *Backend) restore(ctx context.Context, k recorded, ips []string) error {
	if err := b.cns.assign(ctx, pathRequest, assignmentOf(k.address, ips)); err != nil {
		return err
	}
	if len(k.interfaces) == 0 {
		return nil
	}
	var answer returned
	err := b.cns.call(ctx, http.MethodPatch, pathEndpoint+k.container, k.interfaces, &answer)
	if err = cmp.Or(err, answer.check()); err != nil {
		return fmt.Errorf("CNS has it again, without the record of the network interfaces: %w", err)
	}
	return nil
}

// outcome returns the result of a restore from CNS's answer and what CNS has afterwards.
func outcome(answer, place error) error {
	switch {
	case errors.Is(place, ipam.ErrPresent):
		return answer // nil, or what is missing besides the address
	case place != nil:
		return place
	case answer != nil:
		return answer
	default:
		return errors.New("CNS reported success, but has not assigned it")
	}
}

// compare returns the records whose places are free, by index, and what Compare returns.
func (b *Backend) compare(ctx context.Context, rs []ipam.Record) (free map[int]recorded, errs []error) {
	errs = make([]error, len(rs))
	free = make(map[int]recorded)
	s, failure := b.cns.state(ctx)
	for i, r := range rs {
		k, err := readRecord(r)
		if err = cmp.Or(err, failure); err == nil {
			err = cmp.Or(s.place(k), s.company(k))
		}
		if errs[i] = err; err == nil {
			free[i] = k
		}
	}
	return free, errs
}

// place returns nil if the address of a record is free, and otherwise what ipam.Backend.Compare
// returns.
func (s *state) place(k recorded) error {
	a := s.byIP[k.ip]
	switch {
	case a == nil:
		return fmt.Errorf("%w: CNS no longer has this address", ipam.ErrTaken)
	case a.unreadable != "":
		return fmt.Errorf("%w: %s", ipam.ErrTaken, a.unreadable)
	case a.State == available:
		return nil
	case a.State != assigned:
		return fmt.Errorf("%w: its state in CNS is %s", ipam.ErrTaken, a.State)
	case a.container == k.container:
		return ipam.ErrPresent
	}
	return fmt.Errorf("%w: CNS has it for container %s of pod %s/%s", ipam.ErrTaken, a.container, a.Owner.Namespace, a.Owner.Name)
}

// company returns an error if the container of a record has any address: CNS would answer with
// that one, and assign no other.
func (s *state) company(k recorded) error {
	for _, a := range s.addresses {
		if !a.held() && a.container == k.container {
			return fmt.Errorf("CNS assigns all addresses of a container at once, and container %s has %s", k.container, a.ip)
		}
	}
	return nil
}
