package report

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A Question says of which allocations an Explanation is: of one address, of one pod, or of
// one node. Name stands for a pod or a node. Exactly one of Address, Pod, Node and Name is
// set.
type Question struct {
	Address   string `json:"address,omitempty"`
	Namespace string `json:"namespace,omitempty"` // of the pod; empty for any
	Pod       string `json:"pod,omitempty"`
	Node      string `json:"node,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String names what is asked about, such as "pod shop/web".
func (q Question) String() string {
	switch {
	case q.Address != "":
		return "address " + q.Address
	case q.Node != "":
		return "node " + q.Node
	case q.Name != "":
		return "pod or node " + q.Name
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

	// Found has the allocations; of a node, those that have no owner.
	Found []Explained `json:"found"`

	// Others is how many allocations of a node are left out, since they did not leak.
	Others int `json:"others"`

	// Leaked counts the allocations without an owner; null if that is not known.
	Leaked *Leaked `json:"leaked"`

	// Pools have the address in their ranges.
	Pools []string `json:"pools,omitempty"`

	Warnings []string `json:"warnings,omitempty"`
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
// that of a run on the same cluster. The error is an *InputError if a name is that of a
// pod and of a node.
func Explain(r Report, q Question, command []string) (Explanation, error) {
	x := Explanation{
		APIVersion: policy.APIVersion, Kind: "Explanation", Run: r.Run, Result: r.Result,
		Stores: []StoreAnswer{}, Found: []Explained{}, Warnings: r.Warnings,
	}
	var err error
	if x.Question, err = q.resolve(r.Entries); err != nil {
		return x, err
	}
	var kubectl []string
	if r.Run.Kubeconfig != "" {
		kubectl = append(kubectl, "--kubeconfig", r.Run.Kubeconfig)
	}
	if r.Run.Context != "" {
		kubectl = append(kubectl, "--context", r.Run.Context)
	}
	part := Report{Backends: r.Backends, Entries: []Entry{}}
	found := make(map[string]int)
	for _, e := range r.Entries {
		if !x.Question.about(e) {
			continue
		}
		part.Entries = append(part.Entries, e)
		found[e.Backend]++
		if x.Question.Node != "" && !e.Leaked {
			x.Others++
			continue
		}
		subject := judge.Subject{
			Rule: e.Rule, Verdict: e.Verdict, Reason: e.Reason, ChangedBy: e.ChangedBy, Note: e.Note, Evidence: e.Evidence,
			Due: e.Due, Owner: e.Owner, Pool: e.Pool, Refused: r.Result.Refused, Command: command, Kubectl: kubectl,
		}
		x.Found = append(x.Found, Explained{e, judge.AskedUntil(e.Rule), subject.Remedies()})
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
	x.Pools = q.poolsOf(r)
	return x, nil
}

// resolve returns the question with a pod or a node in place of a name that may be either.
func (q Question) resolve(entries []Entry) (Question, error) {
	if q.Name == "" {
		return q, nil
	}
	pod, node := false, false
	for _, e := range entries {
		pod, node = pod || e.Owner.Pod == q.Name, node || e.Owner.Node == q.Name
	}
	switch {
	case pod && node:
		return q, ipam.BadInput(fmt.Errorf("%s is a pod and a node", q.Name), "give pod/"+q.Name+" with -n, or node/"+q.Name)
	case pod:
		return Question{Namespace: q.Namespace, Pod: q.Name}, nil
	case node:
		return Question{Node: q.Name}, nil
	default:
		return q, nil
	}
}

// about reports whether the question is about an entry.
func (q Question) about(e Entry) bool {
	switch {
	case q.Address != "":
		return e.IP == q.Address
	case q.Node != "":
		return e.Owner.Node == q.Node
	case q.Pod != "":
		return e.Owner.Pod == q.Pod && (q.Namespace == "" || e.Owner.Namespace == q.Namespace)
	default:
		return false
	}
}

// poolsOf returns the pools whose ranges have the address.
func (q Question) poolsOf(r Report) []string {
	ip, err := netip.ParseAddr(q.Address)
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range r.Pools {
		if prefix, err := netip.ParsePrefix(p.Range); err == nil && prefix.Contains(ip) {
			names = append(names, p.Backend+" "+p.Name)
		}
	}
	return names
}

// ParseQuestion returns the question of an argument: an address, namespace/name or pod/name
// for a pod, node/name for a node, or a bare name. The namespace is that of the pod, if the
// argument does not say it. The error is an *InputError.
func ParseQuestion(text, namespace string) (Question, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return Question{Address: ipam.Shown(ip).String()}, nil
	}
	kind, name, whole := strings.Cut(text, "/")
	switch {
	case text == "" || whole && (kind == "" || name == ""):
		return Question{}, ipam.BadInput(errors.New("it is neither an address nor a name"), "give ADDRESS, NAMESPACE/POD, pod/NAME or node/NAME")
	case !whole:
		return Question{Namespace: namespace, Name: text}, nil
	case kind == "node":
		return Question{Node: name}, nil
	case kind == "pod":
		return Question{Namespace: namespace, Pod: name}, nil
	case namespace != "" && namespace != kind:
		return Question{}, ipam.BadInput(fmt.Errorf("%s is not in the namespace %s", text, namespace), "leave out -n")
	default:
		return Question{Namespace: kind, Pod: name}, nil
	}
}
