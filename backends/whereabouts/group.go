package whereabouts

import (
	"cmp"
	"crypto/sha256"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An ADD makes an entry in a pool and an overlapping reservation of the same address for the
// same pod. They are one group, even across the two backends. If the entry went before its
// reservation, the address would be free in the pool but still reserved: every later ADD would
// try it and go on to the next.
//
// The pools are listed after the reservations, and may change in between; if the policy has one
// of the backends off, the other lists them on its own. Nothing depends on that, since a group is
// made of pool, key and podref:
//
//   - An entry without its reservation forms a group of one. It is new or gone, or it changed
//     hands, and then its token does not match. The next run judges its reservation.
//   - A reservation without its entry has a group of one. It is judged alone, and the release
//     keeps it while the entry is there.
//   - An entry that changed hands to another pod in between has another group. If the same pod
//     adopted it, the group is right, and token and second look decide.
//
// A group only ever keeps more: its members are released together or not at all.

// groupOf returns the group of an entry that names a pod. Two podrefs never share a group,
// because pool names and keys have no spaces. The group is a hash, because every allocation has
// one for as long as a run lasts, and only equality counts.
func groupOf(pool, key, podRef string) string {
	sum := sha256.Sum256([]byte("whereabouts " + pool + " " + key + " " + podRef))
	return string(sum[:16])
}

// groupFor returns the group of the entry that belongs to an overlapping reservation, which is
// the only allocation of its pool: an entry that holds its address for its pod, in an IPPool
// that may be of its network. The group is empty if there is none. If the pod has several such
// entries, an exact match of the network wins over one with a node.
func groupFor(u ipam.Pool, pools []ipPool) (group string) {
	r, network := u.Allocations[0], u.Network
	if r.Unreadable != "" || r.Owner.Pod.Namespace == "" {
		return ""
	}
	if network == unnamed {
		network = ""
	}
	for _, p := range pools {
		key := keyOf(p.prefix, r.IP)
		stored, held := p.allocations[key]
		prefix, ok := poolPrefix(p.name, p.prefix)
		if !held || !ok || !mayBeOf(prefix, network) {
			continue
		}
		e := p.allocation(key, stored)
		if e.Group == "" || e.IP != r.IP || e.Owner.Pod != r.Owner.Pod {
			continue
		}
		if prefix == network {
			return e.Group
		}
		group = cmp.Or(group, e.Group)
	}
	return group
}
