package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

// Tenants write what their pods and machines show, so its size is limited. An object that shows
// more has TooMuch set. A pod with 60 interfaces of two families shows 122 addresses; a
// network-status has about 400 bytes per interface; a container ID has 64 bytes. One address
// takes about 200 bytes in the census.
const (
	maxAddresses     = 128      // of a pod or a machine; also interfaces of a pod
	maxNetworkStatus = 64 << 10 // bytes of the annotation that are decoded
	maxEntries       = 1024     // of a network-status; each takes a microsecond, and the second look lists every pod
	maxSandbox       = 256      // bytes
)

// A showing is what a pod or a virtual machine shows: different addresses, in the order in
// which they were read. The zero value shows nothing.
type showing struct {
	addresses  []netip.Addr
	interfaces []census.Interface // with different names
	networks   []string           // of a network-status, one per entry
	defaults   []string           // the same for its default entries
	pairs      int                // number of addresses of all interfaces
	tooMuch    bool               // something was left out
}

// add adds the address in a text, and reports whether there is one.
func (s *showing) add(text string) bool {
	ip, ok := readIP(text)
	if ok {
		s.addIP(ip)
	}
	return ok
}

// addIP adds an address, unless it is there already.
func (s *showing) addIP(ip netip.Addr) {
	switch {
	case slices.Contains(s.addresses, ip):
	case len(s.addresses) == maxAddresses:
		s.tooMuch = true
	default:
		s.addresses = append(s.addresses, ip)
	}
}

// addTo adds an address of an interface.
func (s *showing) addTo(i *census.Interface, ip netip.Addr) {
	s.addIP(ip)
	switch {
	case slices.Contains(i.Addresses, ip):
	case s.pairs == maxAddresses:
		s.tooMuch = true
	default:
		i.Addresses = append(i.Addresses, ip)
		s.pairs++
	}
}

// on returns the interface with a name, or nil if there are too many.
func (s *showing) on(name string) *census.Interface {
	for i := range s.interfaces {
		if s.interfaces[i].Name == name {
			return &s.interfaces[i]
		}
	}
	if len(s.interfaces) == maxAddresses {
		s.tooMuch = true
		return nil
	}
	s.interfaces = append(s.interfaces, census.Interface{Name: name})
	return &s.interfaces[len(s.interfaces)-1]
}

// readNetworkStatus adds the addresses of a network-status annotation by interface. For an
// interface without a name, it uses the name of the network. It adds what it can read, up to
// the limits, and reports whether that is the whole annotation.
func (s *showing) readNetworkStatus(annotation string) bool {
	if annotation == "" {
		return true
	}
	if len(annotation) > maxNetworkStatus {
		s.tooMuch = true
		annotation = annotation[:maxNetworkStatus]
	}
	entries := json.NewDecoder(strings.NewReader(annotation))
	switch token, err := entries.Token(); {
	case err != nil || token != nil && token != json.Delim('['):
		return false
	case token == nil:
		return atEnd(entries)
	}
	readable := true
	for n := 0; entries.More(); n++ {
		if n == maxEntries {
			s.tooMuch = true
			return false
		}
		err := s.readEntry(entries)
		if wrong := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &wrong) {
			return false
		}
		readable = readable && err == nil
	}
	_, err := entries.Token()
	return readable && err == nil && atEnd(entries)
}

// errNoAddress says that a network-status has an invalid address.
var errNoAddress = &json.UnmarshalTypeError{Field: "ips"}

// readEntry reads the next entry of a network-status. The error is an UnmarshalTypeError if
// later entries can still be read.
func (s *showing) readEntry(entries *json.Decoder) error {
	var e struct {
		Name      string   `json:"name"`
		Interface string   `json:"interface"`
		IPs       []string `json:"ips"`
		Default   bool     `json:"default"`
	}
	// An error in one field does not keep the others from being read.
	err := entries.Decode(&e)
	if err != nil && len(e.IPs) == 0 {
		return err
	}
	if e.Default {
		s.defaults = append(s.defaults, e.Name)
	} else {
		s.networks = append(s.networks, e.Name)
	}
	name := e.Interface
	if name == "" {
		name = "network " + e.Name
	}
	on := s.on(name)
	if on == nil {
		return err
	}
	for _, text := range e.IPs {
		ip, ok := readIP(text)
		if !ok {
			err = cmp.Or[error](err, errNoAddress)
			continue
		}
		s.addTo(on, ip)
	}
	return err
}

// atEnd reports whether only space follows.
func atEnd(values *json.Decoder) bool {
	_, err := values.Token()
	return errors.Is(err, io.EOF)
}

// readIP returns the address in a text, and whether there is one. The text may have a prefix
// length. An IPv4 address in IPv6 form becomes an IPv4 address, so that equal addresses compare
// equal.
func readIP(text string) (netip.Addr, bool) {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "/")
	ip, err := netip.ParseAddr(text)
	return ip.Unmap().WithZone(""), err == nil
}
