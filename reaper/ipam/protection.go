package ipam

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A Protector has objects that keep addresses which stores hold. Nothing is released while it cannot
// be read, because any address may be protected.
type Protector interface {
	// Name identifies the protector in policies, logs and reports. No backend has the same.
	Name() string

	// Protections returns all protections, or an error. An object that cannot be decoded is a
	// Protection of everything that it may name.
	Protections(ctx context.Context) ([]Protection, error)
}

// A Protection keeps addresses: its IPs, those in its Ranges, and all addresses of its Pod. It ends
// when the pod has been gone for longer than the TTL. If the TTL is nil, it never ends.
type Protection struct {
	Name    string // of the object, for people
	Pod     PodRef // zero if it names none
	IPs     []netip.Addr
	Ranges  Spans // too many addresses for IPs
	TTL     *time.Duration
	Deleted time.Time // when the pod was deleted; zero if the object does not say

	// Unreadable says why the object could not be decoded. Namespaces are those of the pods that it
	// may name; if All is set, everything is protected. An allocation that names no pod may be of any
	// namespace.
	Unreadable string
	Namespaces []string
	All        bool
}

// Until returns when the protection ends, if a run first saw the pod gone at the given
// time. It reports false if the protection never ends.
func (p *Protection) Until(firstSeen time.Time) (time.Time, bool) {
	if p.TTL == nil {
		return time.Time{}, false
	}
	from := firstSeen
	if !p.Deleted.IsZero() {
		from = p.Deleted
	}
	return from.Add(*p.TTL), true
}

// protectionsOf returns the listing of a protector. Its addresses are in the form in which pods show them.
func protectionsOf(ctx context.Context, of Protector) Listing {
	l := Listing{Backend: of.Name(), Protects: true}
	found, err := of.Protections(ctx)
	if err != nil {
		l.Message, l.Errors = printable.Error(err), []error{err}
		return l
	}
	l.Status, l.Whole, l.Protections = StatusOK, true, found
	for _, p := range found {
		for i, ip := range p.IPs {
			p.IPs[i] = Shown(ip)
		}
		if p.Unreadable != "" {
			l.Undecoded = append(l.Undecoded, &ObjectError{Object: p.Name, Err: fmt.Errorf("%s; correct it, or delete it", p.Unreadable)})
		}
	}
	return l
}
