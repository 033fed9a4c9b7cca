package reaper_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An agesBackend is what the two backends of the model have in common.
type agesBackend struct {
	fixedStore // it records tokens
	m          *agesModel
}

func (b agesBackend) list(pool func(ip int) string, ips []int, allocation func(ip int) ipam.Allocation) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		slices.Sort(ips)
		for _, ip := range ips {
			if !yield(ipam.Pool{Name: pool(ip), Network: "-", Allocations: []ipam.Allocation{allocation(ip)}}, nil) {
				return
			}
		}
	}
}

// modelEntries is the backend of the pool.
type modelEntries struct{ agesBackend }

func (modelEntries) Name() string { return "entries" }

func (b modelEntries) List(context.Context) iter.Seq2[ipam.Pool, error] {
	ips := slices.Collect(maps.Keys(b.m.entries))
	return b.list(func(int) string { return "pool" }, ips, func(ip int) ipam.Allocation { return b.m.entryOf(ip, !b.m.adoptsNone) })
}

func (b modelEntries) Release(_ context.Context, ws []ipam.Warrant) []error {
	if len(ws) != 1 {
		panic("the model releases one entry at a time")
	}
	b.m.reach("remove the entry")
	a, err := b.m.ask(ws[0], b.m.entry)
	ip, _ := strconv.Atoi(a.Key)
	_, held := b.m.entries[ip]
	switch {
	case err != nil || !held:
		return []error{err}
	case b.m.entryOf(ip, true).Token != a.Token:
		return []error{ipam.ErrChanged}
	}
	b.m.put(ip, nil)
	b.m.check(false)
	return []error{nil}
}

// modelReservations is the backend of the reservations. Its release is that of Overlapping in
// backends/whereabouts.
type modelReservations struct{ agesBackend }

func (modelReservations) Name() string { return "reservations" }

func (b modelReservations) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return b.list(strconv.Itoa, slices.Collect(maps.Keys(b.m.reserved)), b.m.reservationOf)
}

func (b modelReservations) Release(ctx context.Context, ws []ipam.Warrant) []error {
	if len(ws) != 1 {
		panic("the model releases one reservation at a time")
	}
	err := b.release(ctx, ws[0])
	b.m.check(false)
	return []error{err}
}

func (b modelReservations) release(ctx context.Context, w ipam.Warrant) error {
	m := b.m
	a, err := w.Allocation()
	if err != nil {
		return err
	}
	ip, _ := strconv.Atoi(a.Key)
	m.reach("check")
	if m.reserved[ip].pod != "" && m.entries[ip].pod == a.Owner.Pod.Name {
		return ipam.ErrKept
	}
	m.reach("write the tombstone")
	r, there := m.reserved[ip]
	if _, err = m.ask(w, m.tombstone); err != nil || !there {
		return err
	}
	switch {
	case r.pod == "": // from an earlier attempt
	case m.reservationOf(ip).Token != a.Token:
		return ipam.ErrChanged
	case m.weak:
		delete(m.reserved, ip)
		return nil
	default:
		m.reserve(ip, "")
	}
	marked := m.reserved[ip]
	m.reach("list the pools")
	if m.entries[ip].pod == a.Owner.Pod.Name {
		return errors.Join(ipam.ErrKept, b.Mend(ctx, a))
	}
	if !m.once {
		w, err = renewed(ctx, w)
	}
	m.reach("delete the reservation")
	if errors.Is(err, ipam.ErrReturned) || errors.Is(err, ipam.ErrKept) {
		return errors.Join(err, b.Mend(ctx, a))
	}
	if _, late := m.ask(w, m.again); err != nil || late != nil {
		return cmp.Or(err, late)
	}
	if m.reserved[ip] == marked {
		delete(m.reserved, ip)
	}
	return nil
}

// Mend implements ipam.Mender.
func (b modelReservations) Mend(_ context.Context, a ipam.Allocation) error {
	ip, _ := strconv.Atoi(a.Key)
	if r, there := b.m.reserved[ip]; there && r.pod == "" {
		b.m.reserve(ip, a.Owner.Pod.Name)
	}
	return nil
}
