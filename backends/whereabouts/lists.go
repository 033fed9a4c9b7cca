package whereabouts

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// lists makes the lists that both backends need. In a round in which both list their stores, it makes
// each list once and hands it to both. It is safe for concurrent use.
type lists struct {
	client rest.Interface
	off    bool // the policy has Pools off
	shared bool // Pools and Overlapping both list their stores in each round

	mu      sync.Mutex
	waiting *round // what one of the two has, and the other has not asked for yet
}

// A round is what is listed in one round. Each list is as fresh as both of its readers need it:
//
//   - The reservations come first. An ADD makes its entry before its reservation, so the IPPools,
//     listed after them, have the entry and the range by which a reservation's name is read.
//   - The entries of the IPPools are listed before the pods, which is all that Pools needs.
//   - The attachments and the NodeSlicePools tell how to read the names of IPPools, so they are listed
//     after these. Overlapping alone does without NodeSlicePools: then it knows the node of no reservation.
//   - The IPAMClaims are listed after all of these, if an allocation belongs to one.
//
// With an error, the list is empty.
type round struct {
	forOverlapping bool // Pools began it
	read           sync.Once

	reservations []reservation
	pools        []ipPool
	attachments  []*configuration
	slices       []slicePool
	claims       claims

	noReservations, noPools, noAttachments, noSlices error
}

// ofRound returns the lists of a round for Overlapping, or else for Pools. A backend that asks again
// begins the next round.
func (s *lists) ofRound(ctx context.Context, overlapping bool) *round {
	s.mu.Lock()
	r := s.waiting
	switch {
	case r != nil && r.forOverlapping == overlapping:
		s.waiting = nil
	default:
		r = &round{forOverlapping: !overlapping}
		if s.shared {
			s.waiting = r
		}
	}
	s.mu.Unlock()
	r.read.Do(func() { r.list(ctx, s.client, overlapping || s.shared, !overlapping || s.shared) })
	return r
}

// list makes the lists, those of reservations and of NodeSlicePools only if asked to.
func (r *round) list(ctx context.Context, client rest.Interface, reservations, slices bool) {
	if reservations {
		r.reservations, r.noReservations = list(ctx, client, overlappingResource, readReservation)
	}
	r.pools, r.noPools = list(ctx, client, poolResource, readPool)
	if r.noPools != nil && (!reservations || r.noReservations != nil) {
		return // neither backend can go on
	}
	var beside sync.WaitGroup
	if slices {
		beside.Go(func() { r.slices, r.noSlices = list(ctx, client, sliceResource, readSlicePool) })
	}
	r.attachments, r.noAttachments = allAttachments(ctx, client)
	beside.Wait()
	r.claims = listClaims(ctx, client)
}

// protections returns what keeps the allocations of one backend. What the other one lists may keep any of them
// if files lack it: notListed is the error of that list, and kind is that of its objects.
func (r *round) protections(s Settings, notListed error, kind string) protections {
	p := protections{claims: r.claims, settings: s}
	if ipam.IsUnread(notListed) {
		p.unread = &ipam.UnreadError{List: kind + "s of Whereabouts"}
	}
	return p
}

// survey returns what is known about the ranges of the round. Without the attachments, no name of an IPPool
// proves anything.
func (r *round) survey() survey {
	var s survey
	for _, a := range r.attachments {
		s.add(a)
	}
	if r.noAttachments != nil {
		s.blind, s.unread = true, true
		s.errs = append(s.errs, r.noAttachments)
	}
	if err := r.noSlices; err != nil && !errors.Is(err, ipam.ErrNotInstalled) && !ipam.IsUnread(err) { // versions before 0.9 lack it
		s.blind = true
		s.errs = append(s.errs, err)
	}
	s.take(r.slices)
	return s
}

// share makes two backends of one program make their lists together.
func (b *Overlapping) share(opened []ipam.Backend) {
	for _, other := range opened {
		if pools, ok := other.(*Pools); ok && !pools.lists.off {
			b.lists = pools.lists
			b.lists.shared = true
		}
	}
}
