package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

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

	// Sharing are the pods that use that address at once; none unless there are several.
	Sharing []string `json:"-"`

	// Withheld says which networks with that address give it to no pod unless one asks for it.
	Withheld []WithheldBy `json:"withheld,omitempty"`

	// Ended is set if a finished pod shows that address.
	Ended bool `json:"-"`

	// NodeState says of the node of the question what Report.NodeState does.
	NodeState string `json:"-"`

	// Found has the allocations; for a node, those that have no owner, and those that it holds
	// because it may have them.
	Found []Explained `json:"found"`

	// Live is how many addresses of a node that is not ready have pods that the API server still lists on it.
	Live int `json:"live,omitempty"`

	// Others is how many allocations of a node are left out because they did not leak. Leaks count
	// the addresses of the node that leaked, or may have.
	Others int    `json:"others"`
	Leaks  []Leak `json:"leaks,omitempty"`

	// Leaked counts the allocations without an owner; null if that is not known.
	Leaked *Leaked `json:"leaked"`

	// Asking has the pods of the question that exist, and whether they wait for an address; of an address, those that
	// are being deleted.
	Asking []Asking `json:"asking,omitempty"`

	// Places are the networks and pools that the question is about, or from which a pod waits
	// for an address. For an address that no store has, their ranges contain it.
	Places []Place `json:"places,omitempty"`

	// Free says whether pods can get an address that no store has; null if that is unknown.
	Free *bool `json:"free,omitempty"`

	// Unrecorded is set if a pod shows the address, and a network may give it to another one.
	Unrecorded bool `json:"unrecorded,omitempty"`

	// LastRelease is the latest run whose journal has the address, or one of the pod, with these
	// allocations; nil if none of the last runs has, or if something uses the address.
	LastRelease *journal.PastRun `json:"lastRelease,omitempty"`

	// Warnings are those of the report, but for findings about other addresses.
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

// A WithheldBy is a network that gives an address to no pod unless one asks for it, or may do so.
type WithheldBy struct {
	Backend string `json:"backend"`
	Network string `json:"network"`
	Why     string `json:"why"` // such as "excluded by the network attachment shop/lan"
}

// A StoreAnswer says how many allocations a store has; null if that is not known.
type StoreAnswer struct {
	Name    string      `json:"name"`
	Status  ipam.Status `json:"status"`
	Message string      `json:"message,omitempty"`
	Found   *int        `json:"found"`
}

// NotInstalled reports whether the cluster has no such store.
func (a StoreAnswer) NotInstalled() bool { return notInstalled(a.Status, a.Message) }

// notInstalled reports whether the status of a store, with its message, says that the cluster has no such store.
func notInstalled(status ipam.Status, message string) bool {
	return status == ipam.StatusSkipped && strings.HasPrefix(message, ipam.ErrNotInstalled.Error())
}

// An Explained is an entry with the rules that decided on it, and what would change it.
type Explained struct {
	Entry
	Asked    []judge.AskedRule `json:"asked"`
	Remedies []judge.Remedy    `json:"remedies"`
}

// Explain explains the allocations of a report that the question is about. The command is
// that of a run on the same cluster. asking are the existing pods with the name in question, or those
// that have the address.
// The error is an *InputError if a name stands for several of a pod, a node and a pool, or if
// nothing has it. If it may be that of a pod that is gone, the explanation is nevertheless whole.
func Explain(r Report, q Question, asking []Asking, command []string) (Explanation, error) {
	x := Explanation{
		APIVersion: policy.APIVersion, Kind: "Explanation", Run: r.Run, Result: r.Result,
		Stores: []StoreAnswer{}, Found: []Explained{},
	}
	var err error
	if x.Question, err = q.resolve(r, asking); err != nil && x.Question.Pod == "" {
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
	for i := range x.Found {
		x.addSilentNode(r, &x.Found[i], command)
	}
	for _, f := range r.Findings {
		if f.Kind == Duplicate && f.IP == x.Question.Address {
			for pod := range f.Pods {
				x.Sharing = append(x.Sharing, pod.String())
			}
		}
		for i := range x.Found {
			e := &x.Found[i]
			shows := slices.ContainsFunc(f.Claims, func(s ShownBy) bool { return s.ref() == e.Owner.PodRef() })
			if f.Kind == Duplicate && f.IP == e.IP && (shows || f.Backend == e.Backend) && e.Verdict == judge.InUse {
				e.Remedies = []judge.Remedy{{Says: f.Remedy()}}
			}
		}
	}
	if ip, err := netip.ParseAddr(x.Question.Address); err == nil && r.Living != nil {
		x.Claims = []Shown{} // it is known that there are no others
		for claim := range r.Living.On(ip) {
			if x.Ended = x.Ended || claim.Ended; !claim.Ended {
				x.Claims = append(x.Claims, Shown{
					Kind: claim.By.Kind, Namespace: claim.By.Ref.Namespace, Name: claim.By.Ref.Name, Source: claim.Source, Proved: claim.Proves,
				})
			}
		}
	}
	if ip, err := netip.ParseAddr(x.Question.Address); err == nil {
		x.addWithheld(r, ip)
	}
	if x.Question.Node != "" {
		if x.NodeState = r.NodeState(x.Question.Node); x.NodeState != "" {
			x.Live = r.live()[x.Question.Node]
		}
		only := []string{"--node", x.Question.Node}
		if r.Run.Node != "" {
			only = nil // all that the run knows is of that node
		}
		x.Leaks = r.leaks(func(e *Entry) bool { return x.Question.about(*e) }, command, only...)
	}
	for _, a := range asking {
		x.addTries(r, a, command)
		a.Why = r.whyNot(a)
		x.addEnd(a)
		if a.Deletion != nil && x.Question.Address != "" {
			x.Asking = append(x.Asking, a)
		}
	}
	x.addPlaces(r, asking, command)
	x.Warnings = slices.DeleteFunc(slices.Clone(r.Warnings), func(warning string) bool {
		return slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return warning == printable.Shorten(f.String(), printable.MaxText) && !x.concerns(f, part.Entries)
		})
	})
	return x, err
}

// addEnd says of the allocations of a pod that is being deleted, or runs without what it asks for, or may, how that
// ends.
func (x *Explanation) addEnd(a Asking) {
	for i := range x.Found {
		e := &x.Found[i]
		used := slices.ContainsFunc(e.Evidence, func(one judge.Evidence) bool { return one.Source == census.PodStatus })
		switch {
		case e.Verdict != judge.InUse || !(Question{Namespace: a.Namespace, Pod: a.Pod}).about(e.Entry):
		case a.Deletion != nil:
			e.Remedies = slices.Insert(e.Remedies, 0, judge.Remedy{Says: "its pod is " + a.Why})
		case a.Restart && !used:
			e.Remedies = []judge.Remedy{{Says: "its pod may run without it, and is not known to use it: once the pod is deleted, a run finds that it leaked, unless a pod of that name takes it"}}
		}
	}
}

// addSilentNode says of an allocation in use that the node of its pod is not ready, and what would end that.
func (x *Explanation) addSilentNode(r Report, e *Explained, command []string) {
	if r.Living == nil || e.Verdict != judge.InUse {
		return
	}
	pod, presence := r.Living.Pod(e.Owner.PodRef())
	ends := r.Living.HasNode(pod.Node) && !r.Living.Node(pod.Node).OutOfService // a node that is gone or fenced loses its pods
	if state := r.NodeState(pod.Node); state != "" && ends && presence == census.Present {
		e.Remedies = r.subject(e.Entry, command).Fence(pod.Node, state)
	}
}

// addTries says of a pod that waits that it holds more addresses of a network than it asks for, and shows none of
// them: each try to start it may have taken one.
func (x *Explanation) addTries(r Report, a Asking, command []string) {
	if !a.Waits {
		return
	}
	pod := ipam.PodRef{Namespace: a.Namespace, Name: a.Pod}
	for _, n := range r.Networks {
		pools, asks := n.refs(), a.asks(n)
		found := func(e Explained) bool { return pools[e.pool()] && e.Owner.PodRef() == pod }
		if !slices.ContainsFunc(x.Found, found) {
			continue
		}
		held := r.unshown(n)[pod]
		if len(held) <= asks {
			continue
		}
		says := fmt.Sprintf("%d addresses of %s name this pod, which asks for %d there and shows none of them: its tries, or earlier pods of its name, took them. Delete it, and a run finds what leaked, unless a pod of that name comes back: first scale down what makes it", len(held), n.Name, asks)
		for i := range x.Found {
			if e := &x.Found[i]; found(*e) && held[e.IP] {
				e.Remedies = r.subject(e.Entry, command).DeletePod(says)
			}
		}
	}
}

// addWithheld says which networks with the address give it to no pod unless one asks for it.
func (x *Explanation) addWithheld(r Report, ip netip.Addr) {
	for _, n := range r.Networks {
		pools := n.refs()
		taken := slices.ContainsFunc(x.Found, func(e Explained) bool { return pools[e.pool()] })
		if why := n.withheld(ip); why != "" && n.Range != "" && (taken || contains(n.Range, ip)) {
			x.Withheld = append(x.Withheld, WithheldBy{Backend: n.Backend, Network: n.Name, Why: why})
		}
	}
}

// concerns reports whether a finding is about what is asked, of which the report has these entries.
func (x Explanation) concerns(f Finding, entries []Entry) bool {
	return slices.ContainsFunc(f.Claims, func(s ShownBy) bool {
		return x.Question.about(Entry{IP: cmp.Or(s.IP, f.IP), Owner: ipam.EntryOwner{Namespace: s.Namespace, Pod: s.Pod, Node: s.Node}})
	}) || slices.ContainsFunc(entries, func(e Entry) bool {
		return e.Backend == f.Backend && (f.IP != "" && e.IP == f.IP || slices.Contains(f.Pools, e.Pool))
	}) || x.Question.Pool != "" && slices.ContainsFunc(x.Places, func(p Place) bool { return p.Backend == f.Backend && p.Name == f.Network })
}

// incomplete reports whether a store may have allocations that the report does not have, or none was
// listed.
func (r Report) incomplete() bool {
	listed := false
	for _, b := range r.Backends {
		listed = listed || b.Status == ipam.StatusOK
		if b.Status == ipam.StatusFailed || b.Status == ipam.StatusPartial {
			return true
		}
	}
	return !listed
}

// subject returns an entry as the subject of remedies.
func (r Report) subject(e Entry, command []string) judge.Subject {
	kubectl := r.Run.Kubectl()
	if r.Run.Place() == "" { // files are of some cluster, and none of these commands is for whichever is current
		kubectl = append(kubectl, "--context", someContext)
		command = append(slices.Clone(command), "--context", someContext)
	}
	noState := ""
	if r.Run.NoState {
		noState = r.Run.StateNamespace
	}
	return judge.Subject{
		NoState: noState,
		Rule:    e.Rule, Verdict: e.Verdict, Reason: e.Reason, ChangedBy: e.ChangedBy, Note: e.Note, Evidence: e.Evidence, Endpoint: e.Endpoint,
		Due: e.Due, Ripe: e.Ripe, Wait: e.Wait, Owner: e.Owner, IP: e.IP, Pool: e.Pool, Policy: r.Run.Policy.where(), Refused: r.Result.Refused, Unread: r.Run.LedgerUnread, Command: command, Kubectl: kubectl,
	}
}

// live counts, by the nodes on which pods are listed, the addresses in use of these pods.
func (r Report) live() map[string]int {
	counts := make(map[string]int)
	type place struct{ node, network, ip string }
	counted := make(map[place]bool)
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Verdict != judge.InUse || e.IP == "" {
			continue
		}
		pod, presence := r.Living.Pod(e.Owner.PodRef())
		at := place{pod.Node, e.Network, e.IP}
		if presence == census.Present && !counted[at] {
			counted[at] = true
			counts[pod.Node]++
		}
	}
	return counts
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

// places returns networks as places. The command is that of a run.
func (r Report) places(command []string, networks []NetworkReport) []Place {
	var all []Place
	for _, n := range networks {
		all = append(all, r.place(command, n))
	}
	return all
}

// place returns a network, or a part of one, as a place.
func (r Report) place(command []string, n NetworkReport) Place {
	p := Place{
		Backend:     n.Backend,
		Name:        n.Name,
		Network:     true,
		Range:       n.Range,
		Usage:       n.Usage,
		Closed:      n.Closed,
		Foreign:     n.Foreign,
		By:          n.By,
		Manual:      n.Manual,
		Blocks:      n.Blocks,
		Attachments: n.Attachments,
		Withheld:    n.withheldBy(),
		Leaks:       r.leaksIn(n, command),
	}
	if n.isPart() {
		p.Part = n.Parts[0].Ranges
	}
	for pod, ips := range r.unshown(n) {
		if len(ips) > 1 {
			p.Unshown = append(p.Unshown, pod.String())
		}
	}
	slices.Sort(p.Unshown)
	return p
}

// unshown returns the addresses in use of a network that their pods, which exist, do not show.
func (r Report) unshown(n NetworkReport) map[ipam.PodRef]map[string]bool {
	if r.Living == nil {
		return nil
	}
	pools, held := n.refs(), make(map[ipam.PodRef]map[string]bool)
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Verdict != judge.InUse || !pools[e.pool()] {
			continue
		}
		ip, err := netip.ParseAddr(e.IP)
		if err != nil {
			continue
		}
		pod, presence := r.Living.Pod(e.Owner.PodRef())
		if presence != census.Present || pod.Shows(ip) {
			continue
		}
		if held[pod.Ref] == nil {
			held[pod.Ref] = make(map[string]bool)
		}
		held[pod.Ref][e.IP] = true
	}
	return held
}

// placeOfPool returns a pool as a place.
func (r Report) placeOfPool(p PoolReport, command []string) Place {
	in := map[ipam.PoolRef]bool{p.ref(): true}
	leaks := r.leaks(func(e *Entry) bool { return in[e.pool()] }, command, "--pool", p.Name)
	return Place{Backend: p.Backend, Name: p.Name, Range: p.Range, Usage: p.Usage, Closed: p.Closed, Leaks: leaks}
}

// placesNamed returns the networks that a name stands for, and such pools outside of these.
func (r Report) placesNamed(name string, command []string) []Place {
	networks := r.networksNamed(name)
	var seen []NetworkReport
	for _, n := range networks {
		seen = append(seen, n.asPodsSeeIt([]string{name})...)
	}
	all := r.places(command, seen)
	alone, _ := r.PoolsNamed(name)
	for _, n := range networks {
		for pool := range n.refs() {
			delete(alone, pool)
		}
	}
	for _, p := range r.Pools {
		if alone[p.ref()] {
			all = append(all, r.placeOfPool(p, command))
		}
	}
	return all
}

// A Place is a network or a pool: how full it is, and why addresses of it leaked.
type Place struct {
	Backend string `json:"backend"`
	Name    string `json:"name"`
	Network bool   `json:"network"` // otherwise it is a pool
	Range   string `json:"range"`
	Usage
	Closed      string   `json:"closed,omitempty"`      // see NetworkReport
	Blocks      *Blocks  `json:"blocks,omitempty"`      // see NetworkReport
	Attachments []string `json:"attachments,omitempty"` // see NetworkReport
	Foreign     bool     `json:"foreign,omitempty"`     // see NetworkReport
	By          string   `json:"by,omitempty"`          // see NetworkReport
	Manual      bool     `json:"manual,omitempty"`      // see NetworkReport

	// Part has the ranges that the attachments in question hand out, if others hand out something else. Then the
	// figures are of these.
	Part []string `json:"part,omitempty"`

	// Withheld says what keeps addresses of it from pods, such as "excluded by the network attachment shop/lan".
	Withheld []string `json:"withheld,omitempty"`

	// Unshown are the pods that hold several addresses of it, and show none of them: each try to start one may
	// have taken an address.
	Unshown []string `json:"unshown,omitempty"`

	// Told is set if an event of the pod that waits names it, and OnlyTold if the pod is not known to ask for it.
	Told     bool `json:"told,omitempty"`
	OnlyTold bool `json:"onlyTold,omitempty"`

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
		for _, a := range asking {
			x.addWaiting(r, a)
		}
	case q.Address != "" && len(x.Found) == 0:
		x.addPlacesAround(r, command)
	case q.Pod != "":
		for _, a := range asking {
			x.addAsking(r, a, command)
		}
	}
}

// addPlacesAround says where an address that no store has could be.
func (x *Explanation) addPlacesAround(r Report, command []string) {
	ip, err := netip.ParseAddr(x.Question.Address)
	if err != nil || !r.Run.Selection.Everything() {
		return
	}
	x.Places = r.places(command, r.networksThat(func(n NetworkReport) bool { return contains(n.Range, ip) }))
	covered := len(x.Places) > 0
	for _, p := range r.Pools {
		if !covered && contains(p.Range, ip) {
			x.Places = append(x.Places, r.placeOfPool(p, command))
		}
	}
	if len(x.Places) == 0 {
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
		if contains(n.Range, ip) {
			free = free || n.Closed == "" && !n.Foreign && n.Capacity != nil && n.handsOut(ip)
			sized = sized && !n.Foreign && n.Capacity != nil
		}
	}
	if !r.incomplete() && (free || sized) && (!free || len(x.Claims) == 0) { // otherwise something may have it
		x.Free = &free
	}
}
