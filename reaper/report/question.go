package report

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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
