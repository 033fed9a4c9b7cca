package azurecns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
)

// A state is what CNS has in memory: all addresses, and which of them a release frees.
type state struct {
	addresses []*address              // in ascending order
	byIP      map[netip.Addr]*address // several of one IP are unreadable: then it has the first
	byID      map[string]*address     // by CNS's own ID
	keys      map[string][]string     // by container key: the IDs that its release frees
}

// state reads all of CNS's memory in one request, which CNS answers under its lock. The list
// that CNS's own tools read, /debug/ipaddresses, is made without the lock: reading it while a
// pod starts may crash CNS with a fatal error of the Go runtime.
func (c *client) state(ctx context.Context) (*state, error) {
	var answer struct {
		Data *struct {
			Keys      map[string][]string        `json:"PodIPIDByPodInterfaceKey"`
			Addresses map[string]json.RawMessage `json:"PodIPConfigState"`
		} `json:"HTTPRestServiceData"`
		Response *returned `json:"Response"`
	}
	if err := c.call(ctx, http.MethodPost, pathDump, struct{}{}, &answer); err != nil {
		return nil, err
	}
	if err := answer.Response.check(); err != nil {
		return nil, err
	}
	if answer.Data == nil || answer.Data.Keys == nil || answer.Data.Addresses == nil {
		return nil, errors.New("the answer lacks the addresses or their keys: is this Azure CNS?")
	}
	return newState(answer.Data.Keys, answer.Data.Addresses), nil
}

// newState decodes the addresses.
func newState(keys map[string][]string, addresses map[string]json.RawMessage) *state {
	s := &state{byIP: make(map[netip.Addr]*address), byID: make(map[string]*address), keys: keys}
	for id, raw := range addresses {
		a := readAddress(id, raw)
		s.byID[id] = a
		s.addresses = append(s.addresses, a)
	}
	slices.SortFunc(s.addresses, func(a, b *address) int { return cmp.Or(a.ip.Compare(b.ip), cmp.Compare(a.id, b.id)) })
	for _, a := range s.addresses {
		s.byIP[a.ip] = cmp.Or(s.byIP[a.ip], a)
	}
	s.check()
	return s
}

// check marks addresses that contradict others as unreadable.
func (s *state) check() {
	places, claims := make(map[netip.Addr]int), make(map[string]int)
	for _, a := range s.addresses {
		places[a.ip]++
	}
	for _, ids := range s.keys {
		for _, id := range ids {
			claims[id]++
		}
	}
	why := make([]string, len(s.addresses))
	for i, a := range s.addresses {
		switch {
		case a.unreadable != "":
			why[i] = a.unreadable
		case places[a.ip] > 1:
			why[i] = fmt.Sprintf("CNS has %s more than once", a.ip)
		case a.State == assigned:
			why[i] = s.ambiguity(a, claims)
		}
	}
	for i, a := range s.addresses {
		a.unreadable = why[i]
	}
}

// ambiguity returns why it is unclear what a release of the address's container frees; empty if
// that is clear. claims has how many keys name each ID.
func (s *state) ambiguity(a *address, claims map[string]int) string {
	if !slices.Contains(s.keys[a.key], a.id) {
		return "CNS does not release it with its container " + a.container
	}
	for _, id := range s.keys[a.key] {
		switch other := s.byID[id]; {
		case other == nil || other.unreadable != "" || other.State != assigned || *other.Owner != *a.Owner:
			return fmt.Sprintf("CNS releases it together with %s, which is not known to belong to its container %s", id, a.container)
		case claims[id] > 1:
			return fmt.Sprintf("CNS releases %s with two containers", id)
		}
	}
	return ""
}
