package azurecns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
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
		Response *response `json:"Response"`
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
	count := make(map[netip.Addr]int)
	for _, a := range s.addresses {
		count[a.ip]++
	}
	keysOf := make(map[string]int)
	for _, ids := range s.keys {
		for _, id := range ids {
			keysOf[id]++
		}
	}
	contradicts := make(map[*address]string)
	for _, a := range s.addresses {
		switch {
		case a.unreadable != "":
		case count[a.ip] > 1:
			contradicts[a] = fmt.Sprintf("CNS has %s more than once", a.ip)
		case a.State == assigned:
			contradicts[a] = s.ambiguity(a, keysOf)
		}
	}
	for a, why := range contradicts {
		a.unreadable = why
	}
}

// ambiguity returns why it is unclear what a release of the address's container frees; empty if
// that is clear. keysOf has how many keys name each ID.
func (s *state) ambiguity(a *address, keysOf map[string]int) string {
	if !slices.Contains(s.keys[a.key], a.id) {
		return "CNS does not release it with its container " + a.container
	}
	for _, id := range s.keys[a.key] {
		switch other := s.byID[id]; {
		case other == nil || other.unreadable != "" || other.State != assigned || *other.Owner != *a.Owner:
			return fmt.Sprintf("CNS releases it together with %s, which is not known to belong to its container %s", id, a.container)
		case keysOf[id] > 1:
			return fmt.Sprintf("CNS releases %s with two containers", id)
		}
	}
	return ""
}

// The states of an address that matter to the backend.
const (
	available = "Available"
	assigned  = "Assigned"
)

// An address is one of those that CNS has for its node.
type address struct {
	stored

	id  string // CNS's own
	raw json.RawMessage
	ip  netip.Addr

	// key identifies a container when CNS releases its addresses; container is the container's
	// ID or its first 8 characters. Both are empty unless the address is assigned.
	key, container string

	unreadable   string // why it could not be understood; empty if it could
	unknownField string
}

// stored is an address as CNS shows it.
type stored struct {
	State   string    `json:"state"`
	ID      string    `json:"ID"`
	IP      string    `json:"IPAddress"`
	Changed time.Time `json:"LastStateTransition"` // zero if CNS does not say
	Network string    `json:"NCID"`                // the network container
	Owner   *owner    `json:"PodInfo"`
}

// An owner is a container that has an address.
type owner struct {
	pod
	Container string `json:"PodInfraContainerID"`
	Interface string `json:"PodInterfaceID"`        // the container's ID, or 8 characters of it and -eth0
	Scheme    int    `json:"Version"`               // says which of the two is the key
	Secondary bool   `json:"SecondaryInterfaceSet"` // the pod has interfaces besides eth0
}

// The schemes of keys.
const (
	schemeInterface = 1
	schemeContainer = 2 // CNS also keeps a record of the container's interfaces
)

// readAddress decodes one address.
func readAddress(id string, raw json.RawMessage) *address {
	a := &address{id: id, raw: raw}
	var err error
	a.unknownField, err = kube.DecodeKnown(raw, "PodIPConfigState", &a.stored)
	if err == nil && a.ID != id {
		err = fmt.Errorf("its ID is %q", a.ID)
	}
	if err == nil {
		a.ip, err = netip.ParseAddr(a.IP)
		a.ip = a.ip.Unmap().WithZone("")
	}
	if err == nil && a.State == assigned {
		a.key, a.container, err = a.Owner.names()
	}
	if err != nil {
		a.unreadable = err.Error()
	}
	return a
}

var (
	wholeID = regexp.MustCompile(`^[0-9a-f]{64}$`)
	shortID = regexp.MustCompile(`^[0-9a-f]{8}-`)
)

// names returns the key of the container, and its ID or the first 8 characters of that. The
// error says why they are unknown.
func (o *owner) names() (key, container string, err error) {
	if o == nil {
		return "", "", errors.New("it is assigned, but CNS names no container")
	}
	switch o.Scheme {
	case schemeInterface:
		key = o.Interface
	case schemeContainer:
		key = o.Container
	default:
		return "", "", fmt.Errorf("CNS names its container in version %d, which is unknown", o.Scheme)
	}
	switch {
	case key == "":
		return "", "", errors.New("it is assigned, but CNS has no key for its container")
	case o.Container == "" && wholeID.MatchString(o.Interface):
		return key, o.Interface, nil
	case o.Container == "" && shortID.MatchString(o.Interface):
		return key, o.Interface[:8], nil
	case !wholeID.MatchString(o.Container):
		return "", "", fmt.Errorf("CNS names its container %q and its interface %q, and neither is a container ID", o.Container, o.Interface)
	case o.Interface != "" && o.Interface != o.Container && !strings.HasPrefix(o.Interface, o.Container[:8]+"-"):
		return "", "", fmt.Errorf("CNS names the container %s and the interface %s, which belongs to another one", o.Container, o.Interface)
	}
	return key, o.Container, nil
}

// held reports whether the address is kept regardless of its container's interfaces.
func (a *address) held() bool { return a.unreadable != "" || a.State != assigned }
