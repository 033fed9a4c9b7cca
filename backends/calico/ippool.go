package calico

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An ipPool is an IPPool: a range that Calico cuts into blocks when nodes need some.
type ipPool struct {
	name   string
	cidr   netip.Prefix
	closed string // why pods get no address from it; empty if they do
	broken error  // why it cannot be decoded; nil if it can
}

// workload is the use of an IPPool for pods.
const workload = "Workload"

// readIPPool decodes an IPPool. It is closed as in libcalico-go's filterIPPool and
// filterPoolsByUse.
func readIPPool(stored resource) ipPool {
	var fields struct {
		Metadata struct {
			Name    string `json:"name"`
			Deleted string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Spec struct {
			CIDR        string   `json:"cidr"`
			Disabled    bool     `json:"disabled"`
			AllowedUses []string `json:"allowedUses"`
		} `json:"spec"`
		Status struct {
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	}
	err := kube.Decode(stored.data, &fields)
	p := ipPool{name: cmp.Or(stored.name, fields.Metadata.Name)}
	if err != nil {
		p.broken = fmt.Errorf("decode: %w", err)
		return p
	}
	spec := fields.Spec
	cidr, err := netip.ParsePrefix(spec.CIDR)
	if err != nil {
		p.broken = fmt.Errorf("cidr: %w", err)
		return p
	}
	p.cidr = cidr.Masked()
	unavailable := false // as its controller in kube-controllers (3.32) says
	for _, c := range fields.Status.Conditions {
		unavailable = unavailable || c.Type == "Allocatable" && c.Status == "False"
	}
	switch {
	case fields.Metadata.Deleted != "":
		p.closed = "being deleted"
	case spec.Disabled:
		p.closed = "disabled"
	case len(spec.AllowedUses) > 0 && !slices.Contains(spec.AllowedUses, workload):
		p.closed = "allowedUses is " + strings.Join(spec.AllowedUses, ", ") + ", without " + workload
	case unavailable:
		p.closed = "its condition Allocatable is False"
	}
	return p
}
