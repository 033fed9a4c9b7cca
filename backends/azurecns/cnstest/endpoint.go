package cnstest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/netip"
)

// endpointPath is where CNS serves the records of the interfaces, by container ID.
const endpointPath = "/network/endpoints/"

// An endpoint is the record of the network interfaces of a container.
type endpoint struct {
	Pod        string                 `json:"PodName"`
	Namespace  string                 `json:"PodNamespace"`
	Interfaces map[string]*networkNIC `json:"IfnameToIPMap"`
}

// A networkNIC is one network interface.
type networkNIC struct {
	IPv4 []network
	IPv6 []network `json:",omitempty"`
	HNS  string    `json:"HnsEndpointID,omitempty"`
	Veth string    `json:"HostVethName,omitempty"`
	MAC  string    `json:"MacAddress,omitempty"`
	Type string    `json:"NICType"`
}

// A network is an address with its mask in base64.
type network struct{ IP, Mask string }

// recordEndpoint writes the record of a container, unless there is one.
func (c *CNS) recordEndpoint(owner *Owner, name string, addresses []assignedAddress) {
	if c.endpoints[owner.Container] != nil {
		return
	}
	nic := new(networkNIC)
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(a.Config.IP); err == nil && ip.Is6() {
			nic.IPv6 = append(nic.IPv6, network{a.Config.IP, "AAAAAAAAAAAAAAAAAAAAAA=="})
		} else {
			nic.IPv4 = append(nic.IPv4, network{a.Config.IP, "AAAAAA=="})
		}
	}
	c.endpoints[owner.Container] = &endpoint{owner.Pod, owner.Namespace, map[string]*networkNIC{name: nic}}
}

// endpoint serves the record of one container.
func (c *CNS) endpoint(w http.ResponseWriter, r *http.Request, container string) {
	if !c.byContainer {
		_ = json.NewEncoder(w).Encode(result{unexpected, "CNS does not manage the endpoint state"})
		return
	}
	e := c.endpoints[container]
	switch r.Method {
	case http.MethodGet:
		answer := struct {
			Response result   `json:"response"`
			Endpoint endpoint `json:"endpointInfo"`
		}{}
		if e == nil {
			answer.Response = result{notFound, "no endpoint state"}
		} else {
			answer.Response.Message, answer.Endpoint = "found", *e
		}
		encode(w, answer.Response.Code, answer)
	case http.MethodPatch:
		c.patch(w, r, container)
	default:
		w.WriteHeader(http.StatusOK) // CNS sends no body
	}
}

// patch completes the record of a container.
func (c *CNS) patch(w http.ResponseWriter, r *http.Request, container string) {
	var patch map[string]*networkNIC
	if err := decode(w, r, &patch); err != nil {
		encode(w, invalidRequest, result{invalidRequest, err.Error()})
		return
	}
	for name, nic := range patch {
		if name == "" || nic.HNS == "" && nic.Veth == "" && nic.MAC == "" && nic.Type == "" {
			encode(w, invalidRequest, result{invalidRequest, "nothing to record"})
			return
		}
	}
	e := c.endpoints[container]
	if e == nil {
		e = &endpoint{Interfaces: make(map[string]*networkNIC)}
		c.endpoints[container] = e
	}
	for name, nic := range patch {
		was := e.Interfaces[name]
		if was == nil {
			was = new(networkNIC)
			e.Interfaces[name] = was
		}
		nic.HNS, nic.Veth, nic.MAC, nic.Type = cmp.Or(nic.HNS, was.HNS), cmp.Or(nic.Veth, was.Veth), cmp.Or(nic.MAC, was.MAC), cmp.Or(nic.Type, was.Type)
		if len(nic.IPv4) == 0 {
			nic.IPv4 = was.IPv4
		}
		if len(nic.IPv6) == 0 {
			nic.IPv6 = was.IPv6
		}
		*was = *nic
	}
	encode(w, success, result{success, "recorded"})
}
