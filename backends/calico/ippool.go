package calico

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An ipPool is an IPPool: a range that Calico cuts into blocks when nodes need some.
type ipPool struct {
	name      string
	cidr      netip.Prefix
	blockBits int // the prefix length of its blocks; 0 if it cannot be read, as oddSize says
	oddSize   error
	selective bool   // only some nodes get blocks of it
	closed    string // why pods get no address from it; empty if they do
	broken    error  // why it cannot be decoded; nil if it can
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
			CIDR        string          `json:"cidr"`
			BlockSize   json.RawMessage `json:"blockSize"`
			Selector    string          `json:"nodeSelector"`
			Disabled    bool            `json:"disabled"`
			AllowedUses []string        `json:"allowedUses"`
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
	p.blockBits, p.oddSize = blockBits(p.cidr, spec.BlockSize)
	p.selective = spec.Selector != "" && strings.ReplaceAll(spec.Selector, " ", "") != "all()"
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

// blockBits returns the prefix length of the blocks of an IPPool, which Calico sets if the IPPool
// does not.
func blockBits(pool netip.Prefix, stored json.RawMessage) (int, error) {
	const hostBits = 6 // of a block, by default
	longest := pool.Addr().BitLen()
	text := string(stored)
	if text == "" || text == "null" || text == "0" {
		return longest - hostBits, nil
	}
	bits, err := strconv.Atoi(text)
	if err != nil || bits < pool.Bits() || bits > longest {
		return 0, fmt.Errorf("its blockSize %s is not the prefix length of blocks in %s", text, pool)
	}
	return bits, nil
}
