package report

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A Question says what an Explanation is about: one address, one pod, one node, or the pools
// that have a name. Name stands for a pod, a node or a pool. Exactly one of Address, Pod, Node,
// Pool and Name is set.
type Question struct {
	Address   string `json:"address,omitempty"`
	Namespace string `json:"namespace,omitempty"` // of the pod; empty for any
	Pod       string `json:"pod,omitempty"`
	Node      string `json:"node,omitempty"`
	Pool      string `json:"pool,omitempty"` // see Report.PoolsNamed
	Name      string `json:"name,omitempty"`
}

// NamesPod reports whether the question may be about a pod.
func (q Question) NamesPod() bool { return q.Pod != "" || q.Name != "" }

// String names what is asked about, such as "pod shop/web".
func (q Question) String() string {
	switch {
	case q.Address != "":
		return "address " + q.Address
	case q.Node != "":
		return "node " + q.Node
	case q.Pool != "":
		return "pool " + q.Pool
	case q.Name != "":
		return "pod, node or pool " + q.Name
	case q.Namespace == "":
		return "pod " + q.Pod
	default:
		return "pod " + q.Namespace + "/" + q.Pod
	}
}

// An Explanation says why allocations got their decisions. It is made from the report of a
// dry run. Its JSON form is a contract that users script against.
type Explanation struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Run        RunInfo  `json:"run"`
	Result     Result   `json:"result"`
	Question   Question `json:"question"`

	// Stores says for each store how many allocations it has.
	Stores []StoreAnswer `json:"stores"`

	// Claims are what shows the address that is asked about, whether or not a store has it.
	Claims []Shown `json:"claims,omitempty"`

	// Found has the allocations; for a node, those that have no owner, and those that it holds
	// because it may have them.
	Found []Explained `json:"found"`

	// Others is how many allocations of a node are left out because they did not leak.
	Others int `json:"others"`

	// Leaked counts the allocations without an owner; null if that is not known.
	Leaked *Leaked `json:"leaked"`

	// Asking has the pods of the question that exist, and whether they wait for an address.
	Asking []Asking `json:"asking,omitempty"`

	// Places are the networks and pools that the question is about, or from which a pod waits
	// for an address. For an address that no store has, their ranges contain it.
	Places []Place `json:"places,omitempty"`

	// Free says whether pods can get an address that no store has; null if that is unknown.
	Free *bool `json:"free,omitempty"`

	// Unrecorded is set if a pod shows the address, and a network may give it to another one.
	Unrecorded bool `json:"unrecorded,omitempty"`

	// LastRelease is the latest run whose journal has the address, with its allocations of it; nil if
	// none of the last runs has, or if something uses the address.
	LastRelease *journal.PastRun `json:"lastRelease,omitempty"`

	// Nearest are the pools that are nearest to an address that is in none.
	Nearest []string `json:"nearest,omitempty"`

	Warnings []string `json:"warnings,omitempty"`
}

// A Shown is something alive that shows an address.
type Shown struct {
	Kind      census.Kind `json:"kind"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	Source    string      `json:"source"` // what shows it, such as "pod status"
	Proved    bool        `json:"proved"` // no tenant can write that
}

// A StoreAnswer says how many allocations a store has; null if that is not known.
type StoreAnswer struct {
	Name    string      `json:"name"`
	Status  ipam.Status `json:"status"`
	Message string      `json:"message,omitempty"`
	Found   *int        `json:"found"`
}

// An Explained is an entry with the rules that decided on it, and what would change it.
type Explained struct {
	Entry
	Asked    []judge.AskedRule `json:"asked"`
	Remedies []judge.Remedy    `json:"remedies"`
}

// Explain explains the allocations of a report that the question is about. The command is
// that of a run on the same cluster. asking are the existing pods with the name in question.
// The error is an *InputError if a name stands for several of a pod, a node and a pool, or if
// no pool has the name.
func Explain(r Report, q Question, asking []Asking, command []string) (Explanation, error) {
	x := Explanation{
		APIVersion: policy.APIVersion, Kind: "Explanation", Run: r.Run, Result: r.Result,
		Stores: []StoreAnswer{}, Found: []Explained{}, Warnings: r.Warnings,
	}
	var err error
	if x.Question, err = q.resolve(r, asking); err != nil {
		return x, err
	}
	part := Report{Backends: r.Backends, Entries: []Entry{}}
	found := make(map[string]int)
	inside, _ := r.PoolsNamed(x.Question.Pool)
	for _, e := range r.Entries {
		ofPool := inside[e.pool()]
		if !ofPool && !x.Question.about(e) {
			continue
		}
		part.Entries = append(part.Entries, e)
		found[e.Backend]++
		if ofPool {
			continue // its place says why
		}
		if x.Question.Node != "" && !e.Leaked {
			x.Others++
			continue
		}
		x.Found = append(x.Found, Explained{e, judge.AskedUntil(e.Rule), r.subject(e, command).Remedies()})
	}
	if r.Leaked != nil {
		x.Leaked = leakedOf(part)
	}
	for _, b := range r.Backends {
		a := StoreAnswer{Name: b.Name, Status: b.Status, Message: b.Message}
		if n := found[b.Name]; b.Counted() {
			a.Found = &n
		}
		x.Stores = append(x.Stores, a)
	}
	for _, f := range r.Findings {
		for i := range x.Found {
			if e := &x.Found[i]; f.Kind == Duplicate && f.IP == e.IP && f.Backend == e.Backend && e.Verdict == judge.InUse {
				e.Remedies = []judge.Remedy{{Says: f.Remedy()}}
			}
		}
	}
	if ip, err := netip.ParseAddr(x.Question.Address); err == nil && r.Claims != nil {
		x.Claims = []Shown{} // it is known that there are no others
		for claim := range r.Claims(ip) {
			if !claim.Ended {
				x.Claims = append(x.Claims, Shown{
					Kind: claim.By.Kind, Namespace: claim.By.Ref.Namespace, Name: claim.By.Ref.Name, Source: claim.Source, Proved: claim.Proves,
				})
			}
		}
	}
	x.addPlaces(r, asking, command)
	return x, nil
}

// subject returns an entry as the subject of remedies.
func (r Report) subject(e Entry, command []string) judge.Subject {
	var kubectl []string
	if r.Run.Kubeconfig != "" {
		kubectl = append(kubectl, "--kubeconfig", r.Run.Kubeconfig)
	}
	if r.Run.Context != "" {
		kubectl = append(kubectl, "--context", r.Run.Context)
	}
	return judge.Subject{
		Rule: e.Rule, Verdict: e.Verdict, Reason: e.Reason, ChangedBy: e.ChangedBy, Note: e.Note, Evidence: e.Evidence, Endpoint: e.Endpoint,
		Due: e.Due, Owner: e.Owner, Pool: e.Pool, Refused: r.Result.Refused, Command: command, Kubectl: kubectl,
	}
}

// resolve returns the question with a pod, a node or a pool in place of a name that may be any of
// them. namespace/name is a pool if there is no such pod.
func (q Question) resolve(r Report, asking []Asking) (Question, error) {
	name := cmp.Or(q.Name, q.Pool)
	if q.Pod != "" && q.Namespace != "" {
		name = q.Namespace + "/" + q.Pod
	}
	_, pool := r.PoolsNamed(name)
	pod, node := len(asking) > 0, false
	for _, e := range r.Entries {
		pod, node = pod || q.about(e) || e.Owner.Pod == q.Name, node || Question{Node: q.Name}.about(e)
	}
	if q.Name == "" {
		switch {
		case q.Pool != "" && !pool:
			return q, ipam.BadInput(fmt.Errorf("no pool or network named %s, or inside it", q.Pool), "ip-reaper pools --all lists all of them")
		case q.Pod != "" && !pod && pool:
			return Question{Pool: name}, nil
		}
		return q, nil
	}
	var one Question
	var is, say []string
	for _, kind := range []struct {
		name     string
		is       bool
		question Question
	}{
		{"pod", pod, Question{Namespace: q.Namespace, Pod: q.Name}}, {"node", node, Question{Node: q.Name}}, {"pool", pool, Question{Pool: q.Name}},
	} {
		if kind.is {
			one, is, say = kind.question, append(is, "a "+kind.name), append(say, kind.name+"/"+q.Name)
		}
	}
	switch len(is) {
	case 0:
		return q, nil
	case 1:
		return one, nil
	default:
		return q, ipam.BadInput(fmt.Errorf("%s is %s", q.Name, strings.Join(is, " and ")), "give "+strings.Join(say, " or "))
	}
}

// about reports whether the question is about an entry.
func (q Question) about(e Entry) bool {
	switch {
	case q.Address != "":
		return e.IP == q.Address
	case q.Node != "":
		return e.Owner.Node == q.Node || e.HeldBy(q.Node) != ""
	case q.Pod != "":
		return e.Owner.Pod == q.Pod && (q.Namespace == "" || e.Owner.Namespace == q.Namespace)
	default:
		return false
	}
}

// HeldBy returns what the evidence says about a node, if that is why the entry is held: it may be on
// that node. Otherwise it returns an empty string.
func (e *Entry) HeldBy(node string) string {
	i := slices.IndexFunc(e.Evidence, func(one judge.Evidence) bool { return one.Source == "node "+node })
	if i < 0 || e.Reason != judge.NodeUnreachable {
		return ""
	}
	return e.Evidence[i].Says
}

// ParseQuestion returns the question of an argument: an address, a CIDR, namespace/name or pod/name
// for a pod, node/name for a node, pool/name for a pool or a network, or a bare name. The namespace
// is that of the pod, if the argument does not give it. The error is an *InputError.
func ParseQuestion(text, namespace string) (Question, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return Question{Address: ipam.Shown(ip).String()}, nil
	}
	if _, err := netip.ParsePrefix(text); err == nil {
		return Question{Pool: text}, nil
	}
	kind, name, whole := strings.Cut(text, "/")
	switch {
	case text == "" || whole && (kind == "" || name == ""):
		return Question{}, ipam.BadInput(errors.New("it is neither an address nor a name"), "give ADDRESS, CIDR, NAMESPACE/POD, pod/NAME, node/NAME or pool/NAME")
	case !whole:
		return Question{Namespace: namespace, Name: text}, nil
	case kind == "node":
		return Question{Node: name}, nil
	case kind == "pool":
		return Question{Pool: name}, nil
	case kind == "pod":
		return Question{Namespace: namespace, Pod: name}, nil
	case namespace != "" && namespace != kind:
		return Question{}, ipam.BadInput(fmt.Errorf("%s is not in the namespace %s", text, namespace), "leave out -n")
	default:
		return Question{Namespace: kind, Pod: name}, nil
	}
}

// places returns the wanted networks. The command is that of a run.
func (r Report) places(command []string, wanted func(NetworkReport) bool) []Place {
	var all []Place
	for _, n := range r.Networks {
		if wanted(n) {
			all = append(all, Place{
				Backend: n.Backend, Name: n.Name, Network: true, Range: n.Range, Usage: n.Usage, Closed: n.Closed, Blocks: n.Blocks,
				Leaks: r.leaks(n.refs(), n.Name, command),
			})
		}
	}
	return all
}

// placeOfPool returns a pool as a place.
func (r Report) placeOfPool(p PoolReport, command []string) Place {
	in := map[ipam.PoolRef]bool{p.ref(): true}
	return Place{Backend: p.Backend, Name: p.Name, Range: p.Range, Usage: p.Usage, Leaks: r.leaks(in, p.Name, command)}
}

// placesNamed returns the networks that a name stands for, and such pools outside of these.
func (r Report) placesNamed(name string, command []string) []Place {
	all := r.places(command, func(n NetworkReport) bool { return n.named(name) })
	alone, _ := r.PoolsNamed(name)
	for _, n := range r.Networks {
		if n.named(name) {
			for pool := range n.refs() {
				delete(alone, pool)
			}
		}
	}
	for _, p := range r.Pools {
		if alone[p.ref()] {
			all = append(all, r.placeOfPool(p, command))
		}
	}
	return all
}

// An Asking is a pod, and the networks that it requests.
type Asking struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node,omitempty"`

	// Waits is set if the pod waits for an address; otherwise Why says why it does not.
	Waits bool   `json:"waits"`
	Why   string `json:"why,omitempty"`

	// Attachments are the network attachments that it requests, as namespace/name. Unknown are
	// those whose network is not known here.
	Attachments []string `json:"attachments,omitempty"`
	Unknown     []string `json:"unknown,omitempty"`

	// Rangeless are those through which it gets no address of a store.
	Rangeless []Rangeless `json:"rangeless,omitempty"`

	// Default is set if it also waits for an address of the cluster's default network: from any
	// of these IPPools, by name or CIDR, or from any at all if none is named.
	Default bool     `json:"default"`
	IPPools []string `json:"ipPools,omitempty"`
}

// A Rangeless is a network attachment without a range, and why pods get no address through it.
type Rangeless struct {
	Attachment string `json:"attachment"`
	Why        string `json:"why"`
}

// A Place is a network or a pool: how full it is, and why addresses of it leaked.
type Place struct {
	Backend string `json:"backend"`
	Name    string `json:"name"`
	Network bool   `json:"network"` // otherwise it is a pool
	Range   string `json:"range"`
	Usage
	Closed string  `json:"closed,omitempty"` // see NetworkReport
	Blocks *Blocks `json:"blocks,omitempty"` // see NetworkReport

	// Elsewhere are the networks that have room, and from which the pod that waits may get its
	// address in place of this one.
	Elsewhere []string `json:"elsewhere,omitempty"`

	// NoBlock says why the node of the pod that waits gets no address; nil if it may.
	NoBlock *NoBlock `json:"noBlock,omitempty"`

	// Leaks count the addresses that leaked, or may have, by what becomes of them and why: due,
	// waiting, held, undecided.
	Leaks []Leak `json:"leaks"`
}

// addPlaces fills in what the explanation says about networks and pools.
func (x *Explanation) addPlaces(r Report, asking []Asking, command []string) {
	q := x.Question
	switch {
	case q.Pool != "":
		x.Places = r.placesNamed(q.Pool, command)
	case q.Address != "" && len(x.Found) == 0:
		x.addPlacesAround(r, command)
	case q.Pod != "":
		for _, a := range asking {
			x.addAsking(r, a, command)
		}
	}
}

// addAsking adds a pod that exists, and the networks from which it waits for an address: those that it
// requests and in which no store has an address for it.
func (x *Explanation) addAsking(r Report, a Asking, command []string) {
	has := make(map[ipam.PoolRef]bool)
	for _, e := range x.Found {
		if e.Owner.Namespace == a.Namespace && e.Owner.Pod == a.Pod && e.Verdict != judge.Orphaned {
			has[e.pool()] = true
		}
	}
	served := func(n NetworkReport) bool {
		return slices.ContainsFunc(n.Pools, func(pool string) bool { return has[ipam.PoolRef{Backend: n.Backend, Name: pool}] })
	}
	byDefault := a.Default && !slices.ContainsFunc(r.Networks, func(n NetworkReport) bool { return n.Default && served(n) })
	wanted := func(n NetworkReport) bool {
		if n.Default {
			named := len(a.IPPools) == 0 && n.Closed == "" || slices.Contains(a.IPPools, n.Name) || slices.Contains(a.IPPools, n.Range)
			return byDefault && named
		}
		return !served(n) && slices.ContainsFunc(a.Attachments, func(one string) bool { return slices.Contains(n.Attachments, one) })
	}
	for _, one := range a.Attachments {
		known := slices.ContainsFunc(r.Networks, func(n NetworkReport) bool { return slices.Contains(n.Attachments, one) })
		switch why := r.Rangeless[one]; {
		case known:
		case why != "":
			a.Rangeless = append(a.Rangeless, Rangeless{one, why})
		default:
			a.Unknown = append(a.Unknown, one)
		}
	}
	if a.Waits {
		places := r.places(command, wanted)
		r.markChoices(places, a.Node)
		x.Places = append(x.Places, places...)
	}
	x.Asking = append(x.Asking, a)
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
				if p := &places[i]; p.Network && p.Backend == n.Backend && p.Name == n.Name {
					networks, chosen = append(networks, n), append(chosen, p)
					if p.Free == nil || p.Free.Sign() > 0 {
						room = append(room, p.Name)
					}
				}
			}
		}
		if len(networks) == 0 {
			continue
		}
		none := noBlock(node, networks)
		for _, p := range chosen {
			if p.NoBlock = none; none == nil {
				p.Elsewhere = slices.DeleteFunc(slices.Clone(room), func(name string) bool { return name == p.Name })
			}
		}
	}
}

// addPlacesAround says where an address that no store has could be.
func (x *Explanation) addPlacesAround(r Report, command []string) {
	ip, err := netip.ParseAddr(x.Question.Address)
	if err != nil || !r.Run.Selection.Everything() {
		return
	}
	contains := func(in string) bool {
		prefix, err := netip.ParsePrefix(in)
		return err == nil && prefix.Contains(ip)
	}
	x.Places = r.places(command, func(n NetworkReport) bool { return contains(n.Range) })
	covered := len(x.Places) > 0
	for _, p := range r.Pools {
		if !covered && contains(p.Range) {
			x.Places = append(x.Places, r.placeOfPool(p, command))
		}
	}
	unlisted := slices.ContainsFunc(r.Backends, func(b BackendReport) bool {
		return b.Status == ipam.StatusFailed || b.Status == ipam.StatusPartial
	})
	if len(x.Places) == 0 {
		x.Nearest = r.nearest(ip)
		return
	}
	for _, f := range r.Findings {
		if free := false; f.IP == x.Question.Address && !f.Recorded {
			x.Free, x.Unrecorded = &free, true
			return
		}
	}
	free, sized := false, covered
	for _, n := range r.Networks {
		if contains(n.Range) {
			free = free || n.Closed == "" && n.Capacity != nil && n.handsOut(ip)
			sized = sized && n.Capacity != nil
		}
	}
	if !unlisted && (free || sized) && (!free || len(x.Claims) == 0) { // otherwise something may have it
		x.Free = &free
	}
}

// nearest returns the two networks, or else pools, whose ranges are nearest to an address.
func (r Report) nearest(ip netip.Addr) []string {
	type far struct {
		name     string
		distance *big.Int
	}
	var all []far
	add := func(backend, name, in string) {
		prefix, err := netip.ParsePrefix(in)
		if err != nil || prefix.Addr().BitLen() != ip.BitLen() {
			return
		}
		span := ipam.SpanOf(prefix)
		end := span.First
		if span.Last.Less(ip) {
			end = span.Last
		}
		d := new(big.Int).Sub(new(big.Int).SetBytes(end.AsSlice()), new(big.Int).SetBytes(ip.AsSlice()))
		all = append(all, far{backend + " " + name + " (" + in + ")", d.Abs(d)})
	}
	for _, n := range r.Networks {
		add(n.Backend, n.Name, n.Range)
	}
	if len(all) == 0 {
		for _, p := range r.Pools {
			add(p.Backend, p.Name, p.Range)
		}
	}
	slices.SortStableFunc(all, func(a, b far) int { return cmp.Or(a.distance.Cmp(b.distance), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, one := range all[:min(len(all), 2)] {
		names = append(names, one.name)
	}
	return names
}
