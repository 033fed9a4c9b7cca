package whereabouts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// enginePool returns an IPPool as a pool of the engine.
func (p ipPool) enginePool() ipam.Pool {
	u := ipam.Pool{Name: p.pool(), Range: p.prefix, Network: p.place().network, Capacity: handedOut(p.prefix).Count()}
	u.Allocations = make([]ipam.Allocation, 0, len(p.allocations))
	for key, entry := range p.allocations {
		u.Allocations = append(u.Allocations, p.allocation(key, entry))
	}
	slices.SortFunc(u.Allocations, func(a, b ipam.Allocation) int {
		return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.Key, b.Key))
	})
	return u
}

// An entry is one of spec.allocations.
type entry struct {
	ContainerID string `json:"id"`
	PodRef      string `json:"podref"`
	IfName      string `json:"ifname"`
	Claim       string `json:"ipamclaimref"`
}

// allocation decodes one entry.
func (p ipPool) allocation(key string, stored json.RawMessage) ipam.Allocation {
	r := ipam.Allocation{Key: key, Token: string(stored)}
	ip, err := addressAt(p.prefix, key)
	if err != nil {
		r.Unreadable = err.Error()
	}
	r.IP = ip
	var e entry
	if r.UnknownField, err = decodeKnown(stored, "spec.allocations["+key+"]", &e); err != nil {
		r.Unreadable = fmt.Sprintf("allocation %s: %v", key, err)
		return r
	}
	e.ContainerID, e.PodRef, e.IfName = within(r.Token, e.ContainerID), within(r.Token, e.PodRef), within(r.Token, e.IfName)
	r.Owner = ipam.Owner{Pod: readOwner(e.PodRef), Sandbox: e.ContainerID, Interface: e.IfName, Node: p.node}
	// An ADD adopts only an entry of its own pod and interface (AssignIP in pkg/allocate of
	// v0.9.4), and every ADD has an interface. Only versions before 0.8 wrote entries without
	// one, and they adopt none. With node slices, it looks only into the pool of its own node. What a
	// later version with another field adopts is unknown.
	switch {
	case e.Claim != "" || r.UnknownField != "":
	case e.IfName == "":
		r.Adoption = ipam.NeverAdopted
	case p.node != "":
		r.Adoption = ipam.AdoptedOnNode
	}
	if r.Unreadable == "" && r.Owner.Pod.Namespace != "" {
		r.Group = groupOf(p.pool(), key, e.PodRef)
	}
	return r
}

// within returns the part of the text that equals the given one, so that both share memory:
// this saves a tenth of a large listing. If the text lacks the part, it returns the given one.
func within(text, part string) string {
	if i := strings.Index(text, part); i >= 0 {
		return text[i : i+len(part)]
	}
	return part
}

// decodeKnown decodes an object stored at a path. It returns the path of the first field, by
// name, that into lacks; empty if it lacks none.
func decodeKnown(stored json.RawMessage, at string, into any) (unknown string, err error) {
	others, err := kjson.UnmarshalStrict(stored, into)
	if err != nil {
		return "", err
	}
	for _, other := range others {
		name := other.Error()
		if field, ok := errors.AsType[kjson.FieldError](other); ok {
			name = field.FieldPath()
		}
		if path := at + "." + name; unknown == "" || path < unknown {
			unknown = path
		}
	}
	return unknown, nil
}
