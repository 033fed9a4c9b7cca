package report

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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

	// Found has the allocations; for a node, those that have no owner.
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

	// Nearest are the pools that are nearest to an address that is in none.
	Nearest []string `json:"nearest,omitempty"`

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
	x.locate(r, asking, command)
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
		Rule: e.Rule, Verdict: e.Verdict, Reason: e.Reason, ChangedBy: e.ChangedBy, Note: e.Note, Evidence: e.Evidence,
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
		pod, node = pod || q.about(e) || e.Owner.Pod == q.Name, node || e.Owner.Node == q.Name
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
		return e.Owner.Node == q.Node
	case q.Pod != "":
		return e.Owner.Pod == q.Pod && (q.Namespace == "" || e.Owner.Namespace == q.Namespace)
	default:
		return false
	}
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
