package azurecns

import (
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

// infraNIC is the type of the interface that has the addresses of the pool. Records of older
// versions have no type.
const infraNIC = "InfraNIC"

// A device is what the backend reads about a network interface in CNS's record of a container.
type device struct {
	Type string `json:"NICType"`
	Veth string `json:"HostVethName"`
	HNS  string `json:"HnsEndpointID"`
	MAC  string `json:"MacAddress"`
}

// endpoint returns CNS's record of the interfaces of a container, by name; empty if it has
// none.
func (c *client) endpoint(ctx context.Context, container string) (map[string]json.RawMessage, error) {
	var answer struct {
		Response *returned `json:"response"`
		Endpoint struct {
			Interfaces map[string]json.RawMessage `json:"IfnameToIPMap"`
		} `json:"endpointInfo"`
	}
	if err := c.call(ctx, http.MethodGet, pathEndpoint+container, struct{}{}, &answer); err != nil {
		return nil, err
	}
	err := answer.Response.check()
	if code, ok := errors.AsType[*codeError](err); ok && code.code == codeNotFound {
		return map[string]json.RawMessage{}, nil
	}
	return answer.Endpoint.Interfaces, err
}

// leftToCNS says why the addresses of a container with other interfaces stay.
const leftToCNS = ". A release would remove what CNS knows of all of them, so it is left to CNS: nothing has to be done"

// otherInterface returns why a container that may have interfaces other than eth0 keeps its
// addresses; empty if it has no others. A release removes CNS's record of all interfaces. The
// error wraps ipam.ErrAgain.
func (b *Backend) otherInterface(ctx context.Context, a *address) (string, error) {
	switch {
	case a.Owner.Secondary:
		return "its pod has network interfaces besides eth0" + leftToCNS, nil
	case a.Owner.Scheme != schemeContainer:
		return "", nil
	}
	interfaces, err := b.cns.endpoint(ctx, a.container)
	switch {
	case errors.Is(err, ipam.ErrAgain):
		return "", err
	case err != nil:
		return "the network interfaces of its pod are unknown: " + err.Error() + leftToCNS, nil
	}
	for _, name := range slices.Sorted(maps.Keys(interfaces)) {
		var d device
		if err := kube.Decode(interfaces[name], &d); err != nil {
			return fmt.Sprintf("the type of network interface %q of its pod is unknown: %v", name, err) + leftToCNS, nil
		}
		if d.Type != infraNIC && d.Type != "" {
			return fmt.Sprintf("its pod has the network interface %q of type %s", name, d.Type) + leftToCNS, nil
		}
	}
	return "", nil
}
