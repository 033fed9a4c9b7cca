package reaper_test

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A sharedRange is one IPPool of Whereabouts and the overlapping-range reservations of its
// addresses. An address is given by its last byte.
type sharedRange struct {
	version  int // of the pool
	entries  map[int]rangeEntry
	reserved map[int]rangeReservation
	writes   int // of reservations
}

type rangeEntry struct{ pod, box string }

// An empty pod in a reservation is a tombstone.
type rangeReservation struct {
	pod     string
	version int
}

func newSharedRange() *sharedRange {
	return &sharedRange{entries: map[int]rangeEntry{}, reserved: map[int]rangeReservation{}}
}

// put writes an entry into the pool, or removes it.
func (s *sharedRange) put(ip int, e *rangeEntry) {
	s.version++
	if delete(s.entries, ip); e != nil {
		s.entries[ip] = *e
	}
}

// reserve writes a reservation.
func (s *sharedRange) reserve(ip int, pod string) {
	s.writes++
	s.reserved[ip] = rangeReservation{pod, s.writes}
}

// assign returns the address of the pod's entry, or else the lowest free one.
func (s *sharedRange) assign(pod string, taken map[int]bool) int {
	free := 0
	for ip := 9; ip > 0; ip-- {
		e, held := s.entries[ip]
		switch {
		case e.pod == pod:
			return ip
		case !held && !taken[ip]:
			free = ip
		}
	}
	return free
}

// A pluginCall is an ADD of Whereabouts v0.9.4, request by request, as
// IPManagementKubernetesUpdate makes them. The first step creates the pod.
type pluginCall struct {
	pod, box   string
	adoptsNone bool // it is of a version that adopts no entry
	busy       bool // another client writes the pool before the call's first write

	next    pluginStep
	read    int // the version of the pool
	ip      int
	taken   map[int]bool // addresses with a reservation of another owner
	found   bool         // a reservation of its own: no other one is made, whatever happens then
	had     int          // the address whose reservation it found or made
	tries   int
	granted bool
}

type pluginStep int

const (
	createPod pluginStep = iota
	readPool
	readReservation
	writePool
	writeReservation
	pluginDone
)

// step makes one request.
func (c *pluginCall) step(s *sharedRange) {
	switch c.next {
	case createPod:
		c.next = readPool
	case readPool:
		if c.tries++; c.tries == 5 { // the plugin gives up after 100
			c.next = pluginDone
			return
		}
		as := c.pod
		if c.adoptsNone {
			as = "nobody"
		}
		c.read, c.ip, c.next = s.version, s.assign(as, c.taken), readReservation
	case readReservation:
		r, there := s.reserved[c.ip]
		if there && r.pod != c.pod {
			if c.taken == nil {
				c.taken = map[int]bool{}
			}
			c.taken[c.ip], c.next = true, readPool
			return
		}
		if c.next = writePool; there {
			c.found, c.had = true, c.ip
		}
	case writePool:
		if c.busy {
			s.version++
			c.busy = false
		}
		if s.version != c.read {
			c.next = readPool
			return
		}
		s.put(c.ip, &rangeEntry{c.pod, c.box})
		c.next = writeReservation
	case writeReservation:
		_, there := s.reserved[c.ip]
		if !c.found && !there {
			s.reserve(c.ip, c.pod)
			c.had = c.ip
		}
		c.granted, c.next = c.found || !there, pluginDone
	case pluginDone: // it makes no more requests
	}
}

// What the stores may lose of what an ADD gave to its sandbox.
const (
	entryReleased      = "a live address was released"
	reservationDeleted = "a grant lost its reservation"
	neverReserved      = "an ADD made no reservation"
)

// lost says what the stores lost; empty if they have all of it. During a run, a tombstone
// may be in place of the reservation.
func (c *pluginCall) lost(s *sharedRange, over bool) string {
	r, reserved := s.reserved[c.ip]
	switch {
	case (c.granted || c.next == writeReservation) && s.entries[c.ip] != rangeEntry{c.pod, c.box}:
		return entryReleased
	case !c.granted || reserved && (r.pod == c.pod || r.pod == "" && !over):
		return ""
	case c.had == c.ip:
		return reservationDeleted
	default:
		return neverReserved
	}
}

// A pluginDel is the late DEL of a sandbox that is gone, request by request.
type pluginDel struct {
	box string
	ip  int // of the entry that it removed
}

// step makes one request.
func (d *pluginDel) step(s *sharedRange) {
	if d.ip > 0 {
		delete(s.reserved, d.ip) // by its name, whoever has it
		return
	}
	for ip, e := range s.entries {
		if e.box == d.box {
			s.put(ip, nil)
			d.ip = ip
		}
	}
}

// entryOf and reservationOf return what the backends list.
func (s *sharedRange) entryOf(ip int, adopted bool) ipam.Allocation {
	e := s.entries[ip]
	a := sharedAllocation(ip, e.pod)
	a.Token, a.Owner.Sandbox = e.pod+" "+e.box, e.box
	if !adopted {
		a.Adoption = ipam.NeverAdopted
	}
	return a
}

func (s *sharedRange) reservationOf(ip int) ipam.Allocation {
	a := sharedAllocation(ip, s.reserved[ip].pod)
	a.Token = strconv.Itoa(s.reserved[ip].version)
	return a
}

func sharedAllocation(ip int, pod string) ipam.Allocation {
	owner := app(pod)
	owner.UID, owner.Sandbox = "", ""
	return ipam.Allocation{
		Key: strconv.Itoa(ip), IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(ip)}), Owner: owner,
		Group: fmt.Sprint(pod, " ", ip),
	}
}
