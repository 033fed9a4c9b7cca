package azurecns

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"
)

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
	unknown, err := kjson.UnmarshalStrict(raw, &a.stored)
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
	for _, err := range unknown {
		name := err.Error()
		if field, ok := errors.AsType[kjson.FieldError](err); ok {
			name = field.FieldPath()
		}
		a.unknownField = cmp.Or(a.unknownField, name)
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
