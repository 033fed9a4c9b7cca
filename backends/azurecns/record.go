package azurecns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A record is the Stored of an ipam.Record.
type record struct {
	// Address is the address as CNS showed it.
	Address json.RawMessage `json:"address"`

	// Interfaces are from CNS's record of the container, by name; none if CNS keeps no such
	// record.
	Interfaces map[string]json.RawMessage `json:"interfaces,omitempty"`
}

// Record implements ipam.Backend.
func (b *Backend) Record(ctx context.Context, as []ipam.Allocation) ([]json.RawMessage, error) {
	s, err := b.cns.state(ctx)
	if err != nil {
		return nil, err
	}
	stored := make([]json.RawMessage, len(as))
	endpoints := make(map[string]map[string]json.RawMessage) // by container
	for i, listed := range as {
		a := s.byIP[listed.IP]
		if a == nil || a.held() || s.token(a) != listed.Token {
			continue
		}
		interfaces, asked := endpoints[a.container]
		if !asked && a.Owner.Scheme == schemeContainer {
			if interfaces, err = b.cns.endpoint(ctx, a.container); err != nil {
				return nil, err
			}
			endpoints[a.container] = interfaces
		}
		if stored[i], err = json.Marshal(record{a.raw, interfaces}); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// A recorded is a decoded record.
type recorded struct {
	*address
	interfaces map[string]json.RawMessage // those that CNS accepts again
}

// readRecord decodes a record. It returns an error for one that Record cannot have returned.
func readRecord(r ipam.Record) (recorded, error) {
	var stored record
	if err := kube.Decode(r.Stored, &stored); err != nil {
		return recorded{}, fmt.Errorf("decode the record: %w", err)
	}
	var id struct {
		ID string `json:"ID"`
	}
	if err := kube.Decode(stored.Address, &id); err != nil {
		return recorded{}, fmt.Errorf("decode the address of the record: %w", err)
	}
	a := readAddress(id.ID, stored.Address)
	switch {
	case a.unreadable != "":
		return recorded{}, errors.New("the record has an address that cannot be read: " + a.unreadable)
	case a.State != assigned:
		return recorded{}, fmt.Errorf("the record is of an address in the state %q", a.State)
	case a.ip.String() != r.IP || r.Key != r.IP:
		return recorded{}, fmt.Errorf("the record is of %s, and its content of %s", r.IP, a.ip)
	}
	interfaces := make(map[string]json.RawMessage)
	for name, raw := range stored.Interfaces {
		var d device
		if err := kube.Decode(raw, &d); err != nil {
			return recorded{}, fmt.Errorf("decode the interface %q of the record: %w", name, err)
		}
		if name != "" && d != (device{}) { // CNS refuses others
			interfaces[name] = raw
		}
	}
	return recorded{a, interfaces}, nil
}

// Restore implements ipam.Backend with one request for each container: CNS gives a container
// all the addresses that it asks for, if they are free, or none. If CNS keeps a record of the
// interfaces of a container, a second request puts that back.
func (b *Backend) Restore(ctx context.Context, _ string, rs []ipam.Record, permit ipam.Permit) []error {
	free, errs := b.compare(ctx, rs)
	answers := make(map[string]error) // of CNS, by container
	for _, members := range ipam.ByPool(slices.Sorted(maps.Keys(free)), func(i int) string { return free[i].key }) {
		var ips []string
		for _, i := range members {
			ips = append(ips, free[i].IP) // CNS compares strings
		}
		if refused := permit(); refused != nil {
			for _, i := range members {
				errs[i] = refused
				delete(free, i)
			}
			continue
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
		errs[i] = outcome(answer, s.occupied(k))
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
	var answer response
	err := b.cns.call(ctx, http.MethodPatch, pathEndpoint+k.container, k.interfaces, &answer)
	if err = cmp.Or(err, answer.check()); err != nil {
		return fmt.Errorf("CNS has it again, without the record of the network interfaces: %w", err)
	}
	return nil
}

// outcome returns the result of a restore from CNS's answer and what CNS has afterwards.
func outcome(answer, occupied error) error {
	switch {
	case errors.Is(occupied, ipam.ErrPresent):
		return answer // nil, or what is missing besides the address
	case occupied != nil:
		return occupied
	case answer != nil:
		return answer
	default:
		return errors.New("CNS reported success, but has not assigned it")
	}
}

// compare returns the records whose places are free, by index, and the answers for
// the others.
func (b *Backend) compare(ctx context.Context, rs []ipam.Record) (free map[int]recorded, errs []error) {
	errs = make([]error, len(rs))
	free = make(map[int]recorded)
	s, failure := b.cns.state(ctx)
	for i, r := range rs {
		k, err := readRecord(r)
		if err = cmp.Or(err, failure); err == nil {
			err = cmp.Or(s.occupied(k), s.checkAlone(k))
		}
		if errs[i] = err; err == nil {
			free[i] = k
		}
	}
	return free, errs
}

// occupied returns nil if the address of a record is free, and otherwise what Restore answers.
func (s *state) occupied(k recorded) error {
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

// checkAlone returns an error if the container of a record has any address: CNS would answer with
// that one, and assign no other.
func (s *state) checkAlone(k recorded) error {
	for _, a := range s.addresses {
		if !a.held() && a.container == k.container {
			return fmt.Errorf("CNS assigns all addresses of a container at once, and container %s has %s", k.container, a.ip)
		}
	}
	return nil
}
