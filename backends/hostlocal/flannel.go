package hostlocal

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The words for a range that the configuration leaves to flannel: that of its own plugin, and the beginning
// of those that Calico replaces, in canal.
const (
	flannel    = "flannel"
	usePodCIDR = "usePodCidr"
)

// byFlannel reports whether flannel chooses the range of the network.
func (n network) byFlannel() bool {
	return slices.ContainsFunc(n.ranges, func(s span) bool {
		return s.Subnet == flannel || strings.HasPrefix(s.Subnet, usePodCIDR)
	})
}

// subnetsOf returns the ranges that flannel chose for a network: those in its file, or else those that its
// plugin saved for the last lease that has them. It returns none if neither can be read.
func (s Settings) subnetsOf(pool ipam.Pool) (all []span) {
	if d, err := openFolder(s.flannelDir); err == nil {
		defer d.close()
		f, _ := d.read("subnet.env", maxConf)
		for line := range strings.Lines(string(f.content)) {
			name, subnet, _ := strings.Cut(strings.TrimSpace(line), "=")
			if name == "FLANNEL_SUBNET" || name == "FLANNEL_IPV6_SUBNET" {
				all = append(all, span{Subnet: subnet})
			}
		}
	}
	d, err := openFolder(s.CacheDir + "/flannel")
	if err != nil {
		return all
	}
	defer d.close()
	newest := func(a, b ipam.Allocation) int { return b.Created.Compare(a.Created) }
	for _, a := range slices.SortedFunc(slices.Values(pool.Allocations), newest) {
		if len(all) > 0 {
			break
		}
		var saved conf
		f, err := d.read(a.Owner.Sandbox, maxConf)
		if err == nil && json.Unmarshal(f.content, &saved) == nil && saved.Name == path.Base(pool.Name) {
			all = saved.IPAM.spans()
		}
	}
	return all
}
