package report

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A Finding is something wrong with an address that no release mends. No verdict rests on it.
type Finding struct {
	Kind    FindingKind `json:"kind"`
	IP      string      `json:"ip"` // empty for an overlap
	Backend string      `json:"backend"`
	Network string      `json:"network"`

	// Claims are those of the pods that show the address, in the order of their names.
	Claims []ShownBy `json:"claims"`

	// Stored are the pods for which the store has the address, as namespace/name. It is empty if
	// the store has it for none, or for something that names no pod.
	Stored []string `json:"stored"`

	Recorded bool `json:"recorded"` // the store has the address, for a pod or for anything else

	// Pools are two that overlap, and Range is what both of them have. Claims are then those of the
	// pods that show an address of it, and Stored the pods for which either pool has one.
	Range string   `json:"range,omitempty"`
	Pools []string `json:"pools,omitempty"`
}

// A FindingKind says what is wrong with an address.
type FindingKind string

// The kinds of findings.
const (
	Duplicate  FindingKind = "duplicate"  // several live pods show it in one network
	Overlap    FindingKind = "overlap"    // two pools give it out, although each gives out its own alone
	Unrecorded FindingKind = "unrecorded" // a live pod shows it, and the store may give it to another one
)

// FindingKinds are all kinds of findings.
func FindingKinds() []FindingKind { return []FindingKind{Duplicate, Overlap, Unrecorded} }

// A ShownBy is a pod that shows an address.
type ShownBy struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	IP        string `json:"ip,omitempty"` // of an overlap; that of the finding otherwise
	Node      string `json:"node,omitempty"`
	Source    string `json:"source"` // what shows it, such as "pod status"
	Proved    bool   `json:"proved"` // the kubelet writes that, and nobody else

	UID string `json:"-"`
}

// ref returns the pod.
func (s ShownBy) ref() ipam.PodRef { return ipam.PodRef{Namespace: s.Namespace, Name: s.Pod} }

// Proved reports whether every claim is that of a pod's status. The store itself proves an overlap.
func (f Finding) Proved() bool {
	return f.Kind == Overlap || !slices.ContainsFunc(f.Claims, func(s ShownBy) bool { return !s.Proved })
}

// Pods yields the pods whose claims the finding rests on.
func (f Finding) Pods(yield func(ipam.PodRef) bool) {
	if f.Kind == Overlap {
		return
	}
	for _, s := range f.Claims {
		if !yield(s.ref()) {
			return
		}
	}
}

// String says for people what is wrong.
func (f Finding) String() string {
	if f.Kind == Overlap {
		return f.overlapText()
	}
	where := f.IP + " in " + f.Backend + " network " + f.Network
	if f.Kind == Unrecorded {
		s := f.Claims[0]
		return fmt.Sprintf("pod %s shows %s (%s), and the store does not have it: it may give the address to another pod at any time. %s",
			s.ref(), where, s.Source, f.Remedy())
	}
	var names, sources []string
	for _, s := range f.Claims {
		names = append(names, s.ref().String())
		if !slices.Contains(sources, s.Source) {
			sources = append(sources, s.Source)
		}
	}
	stored := "the store has it for none of them"
	if len(f.Stored) > 0 {
		stored = "the store has it for " + printable.Some(f.Stored)
	}
	who := printable.Some(names) + " all"
	if len(names) == 2 {
		who = names[0] + " and " + names[1] + " both"
	}
	return fmt.Sprintf("pods %s show %s (%s): %s. %s", who, where, strings.Join(sources, ", "), stored, f.Remedy())
}

// Remedy says what to do.
func (f Finding) Remedy() string {
	var others []string
	machine := false // one of them is that of a virtual machine
	for _, s := range f.Claims {
		if name := s.ref().String(); !slices.Contains(f.Stored, name) {
			others = append(others, name)
			machine = machine || strings.HasPrefix(s.Pod, "virt-launcher-")
		}
	}
	if machine {
		return "Restart the virtual machine of " + printable.Some(others) + ", so that it gets another address"
	}
	if len(others) == 0 || f.Kind == Duplicate && len(f.Stored) == 0 { // the store may have it for all of them, in several pools
		return "Delete all of these pods but one, so that the others get other addresses"
	}
	return "Delete " + printable.Some(others) + ", so that it gets another address"
}

// Confirmed returns the finding by what a later look at its pods found, and reports whether it is
// still so.
func (f Finding) Confirmed(look func(ipam.PodRef) (census.Pod, census.Presence)) (Finding, bool) {
	if f.Kind == Overlap {
		return f, true
	}
	ip, err := netip.ParseAddr(f.IP)
	f.Claims = slices.DeleteFunc(slices.Clone(f.Claims), func(s ShownBy) bool {
		pod, presence := look(s.ref())
		return err != nil || presence != census.Present || pod.UID != s.UID || !mayClaim(&pod) || !pod.Shows(ip)
	})
	if f.Kind == Unrecorded {
		return f, len(f.Claims) > 0
	}
	return f, len(f.Claims) > 1 && !ofOneMachine(f.Claims, ShownBy.ref)
}

// mayClaim reports whether a pod has what it shows for itself, and not for much less than it lives. A
// pod whose node was booted again, and which hangs since then, still shows what it had before.
func mayClaim(pod *census.Pod) bool {
	return !pod.Finished && !pod.HostNetwork && !pod.NoSandbox && pod.Deadline.IsZero()
}

// settledAfter is how old a pod is whose address a store surely had when it was listed, if the store gave it.
const settledAfter = 10 * time.Minute

// A claimed is an address that a pod shows in a network.
type claimed struct {
	ip       netip.Addr
	network  int32 // index in the layout
	pod      int32 // index in the census
	certain  bool  // the network is certainly the one that gave it
	recorded bool  // the store has the address there
}

// Findings returns what is wrong with the addresses that pods show, and which pools overlap, ordered by
// kind, address and network, if the census is later than the inventory. A claim belongs to a network:
// an address of an interface to that of its network attachment, and what Calico's annotations name to
// Calico's. What a status alone shows is of the default network, whichever that is: it makes a
// duplicate, but is never unrecorded.
//
// It also marks the networks of the layout that are Foreign.
func (y Layout) Findings(inv ipam.Inventory, c census.Census) []Finding {
	networkOf := y.networkOf()
	claims := y.claims(c, y.attachments(inv, c, networkOf))
	slices.SortFunc(claims, func(a, b claimed) int {
		return cmp.Or(a.ip.Compare(b.ip), cmp.Compare(a.network, b.network), cmp.Compare(a.pod, b.pod))
	})
	claims = slices.CompactFunc(claims, func(a, b claimed) bool {
		return a.ip == b.ip && a.network == b.network && a.pod == b.pod
	})
	pods := c.Pods()
	inUse := y.record(inv, networkOf, pods, claims)
	has := make([]bool, len(y.Networks)) // an address that a pod shows, whoever the store has it for
	for _, one := range claims {
		has[one.network] = has[one.network] || one.recorded
	}
	for _, one := range claims {
		n := &y.Networks[one.network]
		settled := c.Began().Sub(pods[one.pod].Created) > settledAfter
		n.Foreign = n.Foreign || n.Default && settled && !has[one.network] && inv.Complete()
	}
	found := y.overlaps(inv, c, networkOf)
	names := make([]string, len(y.Networks)) // a name is unique in its backend
	for i, n := range y.Networks {
		names[i] = n.Backend + " " + n.Name
	}
	for same := range ipam.Addresses(claims, func(one claimed) ipam.Address { return ipam.Address{Network: names[one.network], IP: one.ip} }) {
		n := &y.Networks[same[0].network]
		f := Finding{Backend: n.Backend, Network: n.Name, Stored: []string{}}
		f.Recorded = slices.ContainsFunc(same, func(one claimed) bool { return one.recorded })
		switch {
		case len(same) > 1 && !ofOneMachine(same, func(one claimed) ipam.PodRef { return pods[one.pod].Ref }):
			f.Kind = Duplicate
		case same[0].certain && !f.Recorded && inv.Complete() && n.mayGive(same[0].ip, inUse[same[0].network]):
			f.Kind = Unrecorded
		default:
			continue
		}
		f.IP = same[0].ip.String()
		for _, one := range same {
			f.Claims = append(f.Claims, shownBy(&pods[one.pod], one.ip))
		}
		slices.SortFunc(f.Claims, func(a, b ShownBy) int { return strings.Compare(a.ref().String(), b.ref().String()) })
		found = append(found, f)
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Kind, b.Kind) })
	y.addStored(found, inv, networkOf)
	return found
}

// FindingsOnNode returns the addresses that ready sandboxes of a node have, and host-local has for none of them:
// if the configuration of the ADD says that host-local gave them, and every folder in which they may be
// was listed.
func (y Layout) FindingsOnNode(inv ipam.Inventory, c census.Census) []Finding {
	pools := make(map[ipam.PoolRef]*ipam.Pool)
	for _, l := range inv.Listings {
		for i := range l.Pools {
			pools[ipam.PoolRef{Backend: l.Backend, Name: l.Pools[i].Name}] = &l.Pools[i]
		}
	}
	networks := y.networkOf()
	var found []Finding
	for _, s := range c.Sandboxes() {
		for _, a := range s.Attachments {
			for _, ip := range a.IPs {
				var in *NetworkReport
				recorded := !s.Ready
				for _, ref := range a.Pools {
					pool := pools[ref]
					recorded = recorded || pool == nil || slices.ContainsFunc(pool.Allocations, func(a ipam.Allocation) bool { return a.IP == ip })
					if n, known := networks[ref]; known && in == nil && y.Networks[n].mayGive(ip, true) {
						in = &y.Networks[n]
					}
				}
				if recorded || in == nil {
					continue
				}
				found = append(found, Finding{
					Kind: Unrecorded, IP: ip.String(), Backend: in.Backend, Network: in.Name, Stored: []string{},
					Claims: []ShownBy{{Namespace: s.Pod.Namespace, Pod: s.Pod.Name, Source: census.SandboxCache, Proved: true, UID: s.UID}},
				})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Network, b.Network), cmp.Compare(a.Claims[0].UID, b.Claims[0].UID))
	})
	return slices.CompactFunc(found, func(a, b Finding) bool { return reflect.DeepEqual(a, b) }) // Multus has two entries
}

// Selected returns those of the findings that a selection matches, by one of the pools and by a pod that
// shows the address.
func (y Layout) Selected(found []Finding, s judge.Selection) []Finding {
	return slices.DeleteFunc(append([]Finding{}, found...), func(f Finding) bool {
		if s.Everything() {
			return false
		}
		pools := f.Pools
		for _, n := range y.Networks {
			if len(f.Pools) == 0 && n.Backend == f.Backend && n.Name == f.Network {
				pools = n.Pools
			}
		}
		in := slices.IndexFunc(pools, func(pool string) bool { return s.MatchesPool(f.Backend, pool) })
		if in < 0 {
			return true
		}
		var records []ipam.Record
		for _, by := range slices.Concat(f.Claims, []ShownBy{{}}) {
			records = append(records, ipam.Record{Backend: f.Backend, Pool: pools[in], IP: cmp.Or(by.IP, f.IP), Owner: ipam.EntryOwner{Namespace: by.Namespace, Pod: by.Pod, Node: by.Node}})
		}
		return !slices.Contains(s.OfRecords(records), true)
	})
}

// mayGive reports whether the network may give the address to a pod at any time. Calico's plugin
// can have another IPAM than Calico's, and then writes the same annotations: so a default network
// must be inUse, which means that it has an address for the very pod that shows it.
func (n *NetworkReport) mayGive(ip netip.Addr, inUse bool) bool {
	return n.Capacity != nil && n.handsOut(ip) && n.Closed == "" && !n.Partial && (inUse || !n.Default)
}

// ofOneMachine reports whether the pods may be those of one virtual machine that migrates.
func ofOneMachine[E any](all []E, ref func(E) ipam.PodRef) bool {
	return !slices.ContainsFunc(all, func(one E) bool { return !census.SameMachine(ref(one), ref(all[0])) })
}

// networkOf returns the network of each pool, by its index.
func (y Layout) networkOf() map[ipam.PoolRef]int32 {
	networkOf := make(map[ipam.PoolRef]int32, len(y.Pools))
	for i := range y.Networks {
		for ref := range y.Networks[i].refs() {
			networkOf[ref] = int32(i)
		}
	}
	return networkOf
}

// attachments returns the networks of which pods get addresses through each attachment. For one of
// which no network is known, as for a configuration in a file, these are the networks that have for a
// pod what it shows on that interface.
func (y Layout) attachments(inv ipam.Inventory, c census.Census, networkOf map[ipam.PoolRef]int32) map[string][]int32 {
	by := make(map[string][]int32)
	silent := make(map[int32]bool)
	for i, n := range y.Networks {
		for _, attachment := range n.Attachments {
			by[attachment] = append(by[attachment], int32(i))
		}
		if len(n.Attachments) == 0 && !n.Default {
			silent[int32(i)] = true
		}
	}
	if len(silent) == 0 {
		return by
	}
	named := maps.Clone(by)
	for a := range inv.Allocations() {
		n, ok := networkOf[ipam.PoolRef{Backend: a.Backend, Name: a.Pool}]
		if !ok || !silent[n] || !a.NamesPod() {
			continue
		}
		pod, _ := c.Pod(a.Owner.Pod)
		for _, i := range pod.Interfaces {
			if slices.Contains(i.Addresses, a.IP) && named[i.Network] == nil && !slices.Contains(by[i.Network], n) {
				by[i.Network] = append(by[i.Network], n)
			}
		}
	}
	return by
}

// claims returns what live pods show in the networks, in the order of the pods.
func (y Layout) claims(c census.Census, byAttachment map[string][]int32) []claimed {
	byRange, lengths := make(map[netip.Prefix]int32), make(map[int]bool)
	ranges := make([]netip.Prefix, len(y.Networks))
	for i, n := range y.Networks {
		prefix, err := netip.ParsePrefix(n.Range)
		if err != nil {
			continue
		}
		ranges[i] = shownPrefix(prefix).Masked()
		if n.Default {
			byRange[ranges[i]], lengths[ranges[i].Bits()] = int32(i), true
		}
	}
	if len(byAttachment)+len(byRange) == 0 {
		return nil
	}
	pods := c.Pods()
	claims := make([]claimed, 0, len(pods))
	longest := slices.SortedFunc(maps.Keys(lengths), func(a, b int) int { return b - a })
	var attached []netip.Addr // of the pod
	for p := range pods {
		pod := &pods[p]
		if !mayClaim(pod) {
			continue
		}
		attached = attached[:0]
		for _, i := range pod.Interfaces {
			for _, n := range byAttachment[i.Network] {
				for _, ip := range i.Addresses {
					attached = append(attached, ip)
					if ranges[n].Contains(ip) {
						claims = append(claims, claimed{ip: ip, network: n, pod: int32(p), certain: true})
					}
				}
			}
		}
		for i, ip := range pod.Addresses[:max(pod.InStatus, pod.ByCalico)] {
			if slices.Contains(attached, ip) {
				continue
			}
			for _, bits := range longest {
				prefix, err := ip.Prefix(bits)
				if n, ok := byRange[prefix]; err == nil && ok {
					claims = append(claims, claimed{ip: ip, network: n, pod: int32(p), certain: i < pod.ByCalico})
					break
				}
			}
		}
	}
	return claims
}

// record marks the claims that the stores have: in a pool of their network, for the very pod wherever
// it is, or in what belongs to no pool of the report, as an overlapping-range reservation does. It
// returns which networks have an address for the very pod that shows it. The claims are in the order
// of their addresses.
func (y Layout) record(inv ipam.Inventory, networkOf map[ipam.PoolRef]int32, pods []census.Pod, claims []claimed) (inUse map[int32]bool) {
	inUse = make(map[int32]bool)
	for a := range inv.Allocations() {
		if !a.HoldsAddress() || !a.IP.IsValid() {
			continue
		}
		first, found := slices.BinarySearchFunc(claims, a.IP, func(one claimed, ip netip.Addr) int { return one.ip.Compare(ip) })
		if !found {
			continue
		}
		of, inNetwork := networkOf[ipam.PoolRef{Backend: a.Backend, Name: a.Pool}]
		for i := first; i < len(claims) && claims[i].ip == a.IP; i++ {
			pod, n := &pods[claims[i].pod], &y.Networks[claims[i].network]
			own := a.Owner.Pod == pod.Ref || a.Owner.Sandbox != "" && a.Owner.Sandbox == pod.Sandbox
			switch {
			case inNetwork && claims[i].network == of:
				claims[i].recorded = true
				inUse[of] = inUse[of] || own
			case own, !inNetwork && n.mayHold(a):
				claims[i].recorded = true
			}
		}
	}
	return inUse
}

// mayHold reports whether an allocation of no pool of the report keeps an address of the network.
func (n *NetworkReport) mayHold(a *ipam.Allocation) bool {
	if n.Default {
		return a.Backend == n.Backend
	}
	return n.Unique == "" || n.Unique == a.Network
}

// addStored adds for whom the stores have the addresses.
func (y Layout) addStored(found []Finding, inv ipam.Inventory, networkOf map[ipam.PoolRef]int32) {
	byIP := make(map[netip.Addr][]*Finding, len(found))
	for i := range found {
		if ip, err := netip.ParseAddr(found[i].IP); err == nil { // an overlap has none
			byIP[ip] = append(byIP[ip], &found[i])
		}
	}
	if len(byIP) == 0 {
		return
	}
	for a := range inv.Allocations() {
		of := byIP[a.IP]
		if len(of) == 0 || !a.NamesPod() || !a.HoldsAddress() {
			continue
		}
		network, ok := networkOf[ipam.PoolRef{Backend: a.Backend, Name: a.Pool}]
		for _, f := range of {
			name, shows := a.Owner.Pod.String(), slices.ContainsFunc(f.Claims, func(s ShownBy) bool { return s.ref() == a.Owner.Pod })
			its := shows || !ok || y.Networks[network].Name == f.Network
			if its && f.Backend == a.Backend && !slices.Contains(f.Stored, name) {
				f.Stored = append(f.Stored, name)
			}
		}
	}
}
