package report

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// An Asking is a pod, and the networks that it requests.
type Asking struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node,omitempty"`

	// NodeState says of its node what Report.NodeState does.
	NodeState string `json:"nodeState,omitempty"`

	// Waits is set if the pod waits for an address; otherwise Why says why it does not.
	Waits bool   `json:"waits"`
	Why   string `json:"why,omitempty"`

	// Restart is set if it runs, and gets what it lacks only in its next sandbox.
	Restart bool `json:"restart,omitempty"`

	// Attachments are the network attachments that it requests, as namespace/name, one for each request. Unknown
	// are those whose network is not known here, and Near asks for those that a mistyped one may stand for.
	Attachments []string `json:"attachments,omitempty"`
	Unknown     []string `json:"unknown,omitempty"`
	Near        string   `json:"near,omitempty"`

	// Rangeless are those through which it gets no address of a store.
	Rangeless []Rangeless `json:"rangeless,omitempty"`

	// Default is set if it also waits for an address of the cluster's default network: from any
	// of these IPPools of an IP family, by name or CIDR, or from any of that family if none is named.
	Default   bool     `json:"default"`
	IPv4Pools []string `json:"ipv4Pools,omitempty"`
	IPv6Pools []string `json:"ipv6Pools,omitempty"`

	// ByNamespace says that its namespace names these IPPools, or may name some; empty if it names none.
	ByNamespace string `json:"byNamespace,omitempty"`

	// NoPools are those IPPools that are not among the networks of that IP family.
	NoPools []string `json:"noPools,omitempty"`

	// Fixed are the addresses that it asks Calico for in place of any other, and Refused says why Calico gives some of
	// them to no pod on its node.
	Fixed   []string `json:"fixed,omitempty"`
	Refused []string `json:"refused,omitempty"`

	// Events say why it waits, the newest first. EventsUnknown is why they are not known; empty if they are.
	Events        []Event `json:"events,omitempty"`
	EventsUnknown string  `json:"eventsUnknown,omitempty"`

	// Deletion is set if the pod is being deleted.
	Deletion *Deletion `json:"deletion,omitempty"`
}

// A Deletion says since when a pod is Terminating, and what may keep it.
type Deletion struct {
	Since      time.Time `json:"since"`
	Grace      int64     `json:"gracePeriodSeconds"`
	Finalizers []string  `json:"finalizers,omitempty"`

	// Emptied is set if it has Calico's annotation with its address, and that is empty.
	Emptied bool `json:"emptied,omitempty"`
}

// A Rangeless is a network attachment without a range, and why pods get no address through it.
type Rangeless struct {
	Attachment string `json:"attachment"`
	Why        string `json:"why"`
}

// addAsking adds a pod that exists, and the networks from which it waits for an address: those that it
// requests and in which no store has an address for it, and those that its events name. An allocation that the pod
// does not show serves it only if its next sandbox may adopt it.
func (x *Explanation) addAsking(r Report, a Asking, command []string) {
	has := make(map[ipam.PoolRef]int)
	for _, e := range x.Found {
		serves := e.Adoptable && e.Verdict != judge.Orphaned || e.Verdict == judge.InUse && r.shows(a, e.IP)
		if serves && e.Owner.Namespace == a.Namespace && e.Owner.Pod == a.Pod {
			has[e.pool()]++
		}
	}
	served := func(n NetworkReport) bool {
		held := 0
		for ref := range n.refs() {
			held += has[ref]
		}
		return held >= a.asks(n)
	}
	byDefault := func(six bool) bool {
		return a.Default && !slices.ContainsFunc(r.Networks, func(n NetworkReport) bool { return n.Default && isIPv6(n.Range) == six && served(n) })
	}
	wanted := func(n NetworkReport) bool {
		if n.Default {
			open := len(a.poolsOf(n)) == 0 && n.Closed == "" && !n.Manual
			return len(a.Fixed) == 0 && byDefault(isIPv6(n.Range)) && (open || a.namesPool(n))
		}
		return !served(n) && slices.ContainsFunc(a.Attachments, func(one string) bool { return slices.Contains(n.Attachments, one) })
	}
	a.Fixed = slices.DeleteFunc(a.Fixed, func(ip string) bool { return !byDefault(isIPv6(ip)) })
	for _, one := range a.Attachments {
		known := slices.ContainsFunc(r.Networks, func(n NetworkReport) bool { return slices.Contains(n.Attachments, one) })
		switch why := r.Rangeless[one]; {
		case known:
		case why != "":
			a.Rangeless = append(a.Rangeless, Rangeless{one, why})
		case !slices.Contains(a.Unknown, one):
			a.Unknown = append(a.Unknown, one)
			if a.Near == "" {
				a.Near = printable.Meant(one, r.attachments())
			}
		}
	}
	read := slices.ContainsFunc(r.Networks, func(n NetworkReport) bool { return n.Default })
	for _, address := range a.Fixed {
		if why := r.refuses(address, a.Node); read && why != "" {
			a.Refused = append(a.Refused, address+" is in "+why)
		}
	}
	for _, name := range slices.Concat(a.IPv4Pools, a.IPv6Pools) {
		if a.Default && len(a.Fixed) == 0 && read && !slices.ContainsFunc(r.Networks, func(n NetworkReport) bool {
			return n.Default && (n.Name == name || n.Range == name) && slices.Contains(a.poolsOf(n), name)
		}) {
			a.NoPools = append(a.NoPools, name)
		}
	}
	a.NodeState = r.NodeState(a.Node)
	if a.Waits {
		newest := a.Events[:min(len(a.Events), maxTelling)]
		told := func(n NetworkReport) bool {
			return slices.ContainsFunc(newest, func(e Event) bool { return e.names(n) })
		}
		var places []Place
		for _, n := range r.Networks {
			asks := wanted(n)
			if !asks && !told(n) {
				continue
			}
			for _, seen := range n.asPodsSeeIt(a.Attachments) {
				p := r.place(command, seen)
				p.Told, p.OnlyTold = told(seen), !asks
				if a.namesPool(n) {
					p.By = "" // a pool that is named is used without its selectors (determinePools in libcalico-go's ipam)
				}
				if p.OnlyTold {
					p.Leaks = []Leak{} // the author of an event chooses no command
				}
				places = append(places, p)
			}
		}
		r.markChoices(places, a.Node)
		slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(a.order(), b.order()) })
		x.Places = append(x.Places, places...)
	}
	a.Why = r.whyNot(a)
	x.Asking = append(x.Asking, a)
}

// asks counts the addresses of a network for which the pod asks: one of the default network.
func (a Asking) asks(n NetworkReport) int {
	count := 0
	for _, one := range a.Attachments {
		if slices.Contains(n.Attachments, one) {
			count++
		}
	}
	return max(1, count)
}

// shows reports whether the pod shows an address.
func (r Report) shows(a Asking, address string) bool {
	if r.Living == nil {
		return false
	}
	pod, _ := r.Living.Pod(ipam.PodRef{Namespace: a.Namespace, Name: a.Pod})
	ip, err := netip.ParseAddr(address)
	return err == nil && pod.Shows(ip)
}

// poolsOf returns the IPPools that the pod names of the IP family of one.
func (a Asking) poolsOf(n NetworkReport) []string {
	if isIPv6(n.Range) {
		return a.IPv6Pools
	}
	return a.IPv4Pools
}

// namesPool reports whether the pod names the network as an IPPool of its IP family.
func (a Asking) namesPool(n NetworkReport) bool {
	pools := a.poolsOf(n)
	return slices.Contains(pools, n.Name) || slices.Contains(pools, n.Range)
}

// attachments returns the network attachments that are known.
func (r Report) attachments() []string {
	all := slices.Collect(maps.Keys(r.Rangeless))
	for _, n := range r.Networks {
		all = append(all, n.Attachments...)
	}
	return all
}

// maxTelling is how many events of a pod are searched for networks: a tenant may write many.
const maxTelling = 10

// Waiting returns the pods with a node that may wait for an address: the first one of each namespace, then the second
// ones, and so on, so that no namespace hides others.
func (r Report) Waiting() (pods []ipam.PodRef) {
	if r.Living == nil {
		return nil
	}
	turn, count := make(map[ipam.PodRef]int), make(map[string]int)
	for _, p := range r.Living.Pods() {
		if p.Waits() && p.Node != "" {
			pods = append(pods, p.Ref)
			turn[p.Ref] = count[p.Ref.Namespace]
			count[p.Ref.Namespace]++
		}
	}
	slices.SortStableFunc(pods, func(a, b ipam.PodRef) int { return cmp.Compare(turn[a], turn[b]) })
	return pods
}

// addWaiting adds a pod to the explanation of a pool if it waits for an address of that: it asks for it, or an event
// of the pod names it.
func (x *Explanation) addWaiting(r Report, a Asking) {
	its, _ := Explain(r, Question{Namespace: a.Namespace, Pod: a.Pod}, []Asking{a}, nil) // the pod exists
	if slices.ContainsFunc(its.Places, func(p Place) bool {
		return slices.ContainsFunc(x.Places, func(own Place) bool { return own.Backend == p.Backend && own.Name == p.Name })
	}) {
		x.Asking = append(x.Asking, its.Asking...)
	}
}

// refuses says where an address is that Calico gives to no pod on a node, even if one asks for it; empty if it may, or
// if that is unknown (AssignIP in libcalico-go's ipam).
func (r Report) refuses(address, node string) string {
	ip, _ := netip.ParseAddr(address) // nothing contains it if it is none
	around := r.networksThat(func(n NetworkReport) bool { return n.Default && n.Closed != "disabled" && contains(n.Range, ip) })
	if len(around) == 0 {
		return "no enabled IPPool of those that were read"
	}
	n := around[0]
	blocks, terms := n.refs(), n.Division.Terms
	for _, p := range r.Pools {
		if blocks[p.ref()] && contains(p.Range, ip) && p.Node != node && terms != nil && terms.Strict {
			return "the block " + p.Name + " of " + cmp.Or(p.Node, "no node") + ", and no node may borrow from that of another (strictAffinity)"
		}
	}
	return ""
}

// markChoices says of the places of a pod that waits from which of them its node can get no address, and
// from which it gets one in place of another: of those of the default network, an address of any one
// of its IP family is enough. An attachment gives an address of each of its ranges.
func (r Report) markChoices(places []Place, node string) {
	for family := range r.families() {
		var networks []NetworkReport
		var chosen []*Place
		var room []string
		for _, n := range family {
			for i := range places {
				if p := &places[i]; p.Network && !p.OnlyTold && p.Backend == n.Backend && p.Name == n.Name {
					networks, chosen = append(networks, n), append(chosen, p)
					if n.By == "" && (p.Free == nil || p.Free.Sign() > 0) {
						room = append(room, p.Name)
					}
				}
			}
		}
		if len(networks) == 0 {
			continue
		}
		none := r.noBlock(node, networks)
		for _, p := range chosen {
			if p.NoBlock = none; none == nil {
				p.Elsewhere = slices.DeleteFunc(slices.Clone(room), func(name string) bool { return name == p.Name })
			}
		}
	}
}

// order puts the places first from which a pod that waits gets no address, and those last that only an event names.
func (p Place) order() int {
	if p.OnlyTold {
		return 2
	}
	if p.NoBlock != nil || p.Free != nil && p.Free.Sign() == 0 && len(p.Elsewhere) == 0 {
		return 0
	}
	return 1
}

// whyNot says why a pod does not wait: of one that is being deleted, since when and, once its grace period is over,
// what ends that.
func (r Report) whyNot(a Asking) string {
	d := a.Deletion
	if d == nil {
		return a.Why
	}
	says := "Terminating since " + judge.Stamp(d.Since)
	if d.Emptied {
		says += ", and Calico's annotation of it is empty, as after a DEL"
	}
	took, grace := r.Run.StartedAt.Sub(d.Since), time.Duration(d.Grace)*time.Second
	if r.Run.Undated || took <= grace {
		says += ", with a grace period of " + grace.String()
		if len(d.Finalizers) > 0 {
			says += " and the finalizers " + printable.Some(d.Finalizers)
		}
		return says
	}
	says += ", past its grace period of " + grace.String() + ": it ends once "
	if len(d.Finalizers) > 0 {
		says += "its finalizers (" + printable.Some(d.Finalizers) + ") are removed and "
	}
	state := r.NodeState(a.Node)
	switch {
	case a.Node == "":
		return says + "the API server has deleted it"
	case state == "":
		return says + "the kubelet of its node " + a.Node + " has stopped it"
	}
	return says + "its node " + a.Node + ", which " + state + ", has stopped it, or the garbage collector of pods sees that it is fenced or gone"
}

// NodeState says that a node does not exist or is not ready, and since when, if it says so; nothing if it is ready,
// or if that is unknown.
func (r Report) NodeState(node string) string {
	switch {
	case node == "" || r.Living == nil || !r.Living.HasNodes() || r.Living.Node(node).Ready:
		return ""
	case !r.Living.HasNode(node):
		return "does not exist"
	}
	return strings.TrimPrefix(judge.NotReady(r.Living.Node(node)).Says, "it ")
}
