package report

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A Question says what an Explanation is about: one address, one pod, one node, or the pools
// that have a name. Name stands for a pod, a node or a pool. Exactly one of Address, Pod, Node,
// Pool and Name is set.
type Question struct {
	Address   string `json:"address,omitempty"`
	Namespace string `json:"namespace,omitempty"` // of the pod; empty for any
	Pod       string `json:"pod,omitempty"`
	Node      string `json:"node,omitempty"`
	Pool      string `json:"pool,omitempty"` // or a network, or an attachment: see Layout.PoolsNamed
	Name      string `json:"name,omitempty"`
}

// PodsIn returns the pods that the question may be about, those for which a store has its address, or that show it
// while they are being deleted, and those that may wait for one of its pool. The namespace of one is empty for any.
func (q Question) PodsIn(r Report) []ipam.PodRef {
	if q.Pool != "" {
		return r.Waiting()
	} else if q.Address == "" && q.Pod+q.Name == "" {
		return nil
	} else if q.Address == "" {
		return []ipam.PodRef{{Namespace: q.Namespace, Name: cmp.Or(q.Pod, q.Name)}}
	}
	var pods []ipam.PodRef
	add := func(pod ipam.PodRef) {
		if pod.Name != "" && !slices.Contains(pods, pod) {
			pods = append(pods, pod)
		}
	}
	for _, e := range r.Entries {
		if q.about(e) {
			add(e.Owner.PodRef())
		}
	}
	if ip, err := netip.ParseAddr(q.Address); err == nil && r.Living != nil {
		for claim := range r.Living.On(ip) {
			if pod, _ := r.Living.Pod(claim.By.Ref); claim.By.Kind == census.KindPod && !pod.Deadline.IsZero() {
				add(pod.Ref)
			}
		}
	}
	return pods
}

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
	default:
		return "pod " + strings.TrimPrefix(q.Namespace+"/"+q.Pod, "/")
	}
}

// resolve returns the question with a pod, a node or a pool in place of a name that may be any of
// them. namespace/name is a network attachment or a pool if there is no such pod. The error is an
// *InputError if the name stands for several of them, and then the question is zero, or for nothing: a pod
// may have had it.
func (q Question) resolve(r Report, asking []Asking) (Question, error) {
	if q.Address != "" {
		return q, nil
	}
	whole := q.Namespace + "/" + cmp.Or(q.Pod, q.Name)
	pool := ""
	for _, name := range []string{q.Pool, q.Name, whole} {
		if _, known := r.PoolsNamed(name); known && pool == "" {
			pool = name
		}
	}
	pod, node := len(asking) > 0, r.Living != nil && r.Living.HasNode(cmp.Or(q.Node, q.Name))
	asPod, asNode := Question{Namespace: q.Namespace, Pod: cmp.Or(q.Pod, q.Name)}, Question{Node: cmp.Or(q.Node, q.Name)}
	for _, e := range r.Entries {
		pod, node = pod || asPod.about(e), node || asNode.about(e)
	}
	if !pod && r.Living != nil {
		pod = slices.ContainsFunc(r.Living.Pods(), func(p census.Pod) bool { return asPod.names(p.Ref.Namespace, p.Ref.Name) })
	}
	var one Question
	var is, say []string
	for _, kind := range []struct {
		name     string
		is       bool
		question Question
	}{
		{"pod", pod && q.Node+q.Pool == "", asPod}, {"node", node && q.Pod+q.Pool == "", asNode},
		{"pool", pool != "" && q.Node == "" && (!pod || q.Pod == ""), Question{Pool: pool}},
	} {
		if kind.is {
			one, is, say = kind.question, append(is, "a "+kind.name), append(say, kind.name+"/"+q.Name)
		}
	}
	switch len(is) {
	case 0:
		err := q.unknown(r, whole)
		if err != nil && q.Node+q.Pool == "" {
			q = asPod
		}
		return q, err
	case 1:
		return one, nil
	default:
		return Question{}, ipam.BadInput(fmt.Errorf("%s is %s", q.Name, strings.Join(is, " and ")), "give "+strings.Join(say, " or "))
	}
}

// Besides returns what a selection narrows beside the question, which has the namespace of its pod.
func (q Question) Besides(s judge.Selection) judge.Selection {
	if slices.Equal(s.Namespaces, []string{q.Namespace}) {
		s.Namespaces = nil
	}
	return s
}

// unknown returns an *InputError that says that nothing has the name, with those that are near; nil
// if something may have it that the report does not know.
func (q Question) unknown(r Report, whole string) error {
	if why := cmp.Or(r.Rangeless[q.Pool], r.Rangeless[whole]); why != "" {
		return ipam.BadInput(fmt.Errorf("pods get no address of a store through the network attachment %s: %s", cmp.Or(q.Pool, whole), why), "")
	}
	if r.incomplete() || q.Pool == "" && (r.Living == nil || !q.Besides(r.Run.Selection).Everything()) ||
		q.Name != "" && !r.Run.Selection.Everything() || q.Node+q.Name != "" && !r.Living.HasNodes() {
		return nil
	}
	text, names := "there is no %s, and no allocation of it", r.PoolNames()
	if q.Name != "" && strings.Trim(q.Name, "0123456789abcdef.:") == "" {
		text = "there is no %s, and it is not an address"
	}
	if q.Pool != "" {
		text = "there is no %s, and none inside it"
	} else {
		names = slices.AppendSeq(names, r.Living.Nodes())
		for _, p := range r.Living.Pods() {
			names = append(names, p.Ref.String(), p.Ref.Name)
		}
		for _, e := range r.Entries {
			names = append(names, e.Owner.PodRef().String(), e.Owner.Pod)
		}
	}
	near := printable.Meant(cmp.Or(q.Node, q.Pool, strings.TrimPrefix(whole, "/")), names)
	return ipam.BadInput(fmt.Errorf(text, q), cmp.Or(near, "pools --all lists all pools, and run --all all allocations"))
}

// names reports whether a question about a pod is about this one.
func (q Question) names(namespace, pod string) bool {
	return q.Pod == pod && (q.Namespace == "" || q.Namespace == namespace)
}

// about reports whether the question is about an entry.
func (q Question) about(e Entry) bool {
	switch {
	case q.Address != "":
		return e.IP == q.Address
	case q.Node != "":
		return e.Owner.Node == q.Node || e.HeldBy(q.Node) != ""
	case q.Pod != "":
		return q.names(e.Owner.Namespace, e.Owner.Pod)
	default:
		return false
	}
}

// Recorded reports whether a question about an address or a pod is about an allocation of a journal.
func (q Question) Recorded(e journal.RecordedEntry) bool {
	q.Pod = cmp.Or(q.Pod, q.Name)
	return q.Address != "" && q.Address == e.IP || q.Pod != "" && q.names(e.Owner.Namespace, e.Owner.Pod)
}

// ParseQuestion returns the question of an argument: an address, a CIDR, namespace/name, pod/name or
// pod/namespace/name for a pod or a network attachment, node/name for a node, pool/name for a pool or a network, or a
// bare name. The namespace is that of the pod, if the argument does not give it. The error is an *InputError.
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
	case kind == "pod" && strings.Contains(name, "/"): // pod/namespace/name
		return ParseQuestion(name, namespace)
	case kind == "pod":
		return Question{Namespace: namespace, Pod: name}, nil
	case strings.ContainsAny(kind, ".:"): // no namespace has these
		return Question{Pool: text}, nil
	case namespace != "" && namespace != kind:
		return Question{}, ipam.BadInput(fmt.Errorf("%s is not in the namespace %s", text, namespace), "leave out -n")
	default:
		return Question{Namespace: kind, Pod: name}, nil
	}
}
