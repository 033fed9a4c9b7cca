package hostlocal

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// flannelRanges returns the ranges that flannel chose for a network: those in its file, or else those that its
// plugin saved for the newest lease for which it did. It returns none if neither can be read.
func (b *Backend) flannelRanges(pool ipam.Pool) (all []span) {
	for line := range strings.FieldsSeq(string(contentOf(b.flannelDir, "subnet.env"))) {
		name, subnet, _ := strings.Cut(line, "=")
		if name == "FLANNEL_SUBNET" || name == "FLANNEL_IPV6_SUBNET" {
			all = append(all, span{Subnet: subnet})
		}
	}
	newest := func(a, b ipam.Allocation) int { return b.Created.Compare(a.Created) }
	for _, a := range slices.SortedFunc(slices.Values(pool.Allocations), newest) {
		if len(all) > 0 {
			break
		}
		var saved conf
		if json.Unmarshal(contentOf(b.settings.CacheDir+"/flannel", a.Owner.Sandbox), &saved) == nil && saved.Name == path.Base(pool.Name) {
			all = saved.IPAM.spans()
		}
	}
	return all
}

// contentOf returns what is in a file of a folder; nothing if it cannot be read.
func contentOf(dir, name string) []byte {
	d, err := openFolder(dir)
	if err != nil {
		return nil
	}
	defer d.close()
	f, _ := d.read(name, maxConf)
	return f.content
}
