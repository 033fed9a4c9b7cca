package calico

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// What Calico writes about owners (AttributePod and its like in libcalico-go).
const (
	attrPod       = "pod"
	attrNamespace = "namespace"
	attrNode      = "node" // Calico's name of it
	attrTimestamp = "timestamp"
	attrType      = "type" // of what is no pod
)

// timestampLayout is what Go's time.Time.String prints, which is what Calico
// stores since 3.22, in UTC and by the clock of the node.
const timestampLayout = "2006-01-02 15:04:05.999999999 -0700 MST"

// The IDs of pod sandboxes, as containerd, CRI-O and dockershim make them.
var sandboxID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Names of namespaces and pods, as far as they matter here (RFC 1123).
var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	podName       = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
)

// allocation is one allocation as the engine sees it. Networks are the names of
// networks that handles begin with.
func (b block) allocation(ordinal int, networks map[string]bool) reaper.Allocation {
	a := b.readable[*b.allocations[ordinal]]
	r := reaper.Allocation{
		Key:          strconv.Itoa(ordinal),
		IP:           b.address(ordinal),
		Token:        b.token(ordinal),
		Group:        a.handle(),
		Foreign:      a.foreign(),
		SandboxOwned: true,
		Owner: reaper.Owner{
			Pod:  reaper.PodRef{Namespace: a.Active[attrNamespace], Name: a.Active[attrPod]},
			Node: a.Active[attrNode],
		},
	}
	if b.deleted {
		r.Unreadable = "Calico is deleting the block"
	}
	if at, err := time.Parse(timestampLayout, a.Active[attrTimestamp]); err == nil {
		r.Created = at
	}
	switch {
	case len(a.Active) == 0:
		r.Owner.Pod, r.Owner.Sandbox = guessOwner(a.handle(), networks)
		r.Inferred = r.Owner.Pod != reaper.PodRef{}
	case r.Owner.Pod.Name != "":
		r.Owner.Sandbox = sandboxOf(a.handle(), r.Owner.Pod)
	}
	// Attributes without a pod are those of another orchestrator, of whose
	// containers nobody here knows.
	return r
}

// handle returns the ID of the handle, empty for none. What was migrated from
// host-local may have a line break and the name of an interface behind it, which
// Calico does not take for a part of it either.
func (a attribute) handle() string {
	if a.Handle == nil {
		return ""
	}
	id, _, _ := strings.Cut(*a.Handle, "\r")
	return id
}

// sandboxOf returns the sandbox in a handle <network>.<sandbox>, of which the
// store says that it is this pod's. A handle <namespace>.<pod>, as Calico v2
// wrote them, names none; nor does one of another form, which the pod would seem
// to have replaced.
func sandboxOf(handle string, pod reaper.PodRef) string {
	if handle == pod.Namespace+"."+pod.Name {
		return ""
	}
	_, sandbox, _ := splitHandle(handle)
	return sandbox
}

// guessOwner reads the owner out of a handle where the store does not name one:
// a sandbox, or, where it is none and does not begin with the name of a network,
// a pod.
func guessOwner(handle string, networks map[string]bool) (reaper.PodRef, string) {
	if _, sandbox, ok := splitHandle(handle); ok {
		return reaper.PodRef{}, sandbox
	}
	for i := range handle {
		if handle[i] == '.' && networks[handle[:i]] {
			return reaper.PodRef{}, ""
		}
	}
	namespace, pod, _ := strings.Cut(handle, ".")
	if !namespaceName.MatchString(namespace) || !podName.MatchString(pod) {
		return reaper.PodRef{}, ""
	}
	return reaper.PodRef{Namespace: namespace, Name: pod}, ""
}

// splitHandle splits <network>.<sandbox>; the network's name may have dots too.
func splitHandle(handle string) (network, sandbox string, ok bool) {
	dot := strings.LastIndexByte(handle, '.')
	if dot < 0 || !sandboxID.MatchString(handle[dot+1:]) {
		return "", "", false
	}
	return handle[:dot], handle[dot+1:], true
}

// foreign says what the address is for where that is no pod; nothing otherwise.
func (a attribute) foreign() string {
	switch {
	case len(a.Released) > 0 && string(a.Released) != "null":
		return "nobody: it rests until it may be given away again"
	case a.Active[attrType] != "":
		return "what Calico calls " + a.Active[attrType]
	case len(a.Alternate) > 0:
		return "a virtual machine that moves"
	}
	for _, key := range []string{"vmi-name", "vmi-uid", "vm-uid", "vmim-uid"} {
		if a.Active[key] != "" {
			return "a virtual machine"
		}
	}
	switch {
	case a.Active["service"] != "":
		return "a service"
	case a.Active["note"] != "":
		return a.Active["note"]
	}
	return foreignHandle(a.handle())
}

// foreignHandle says what a handle stands for where that is no pod; nothing
// otherwise.
func foreignHandle(handle string) string {
	switch {
	case strings.Contains(handle, "-tunnel-addr-"):
		return "a tunnel"
	case strings.EqualFold(handle, "windows-reserved-ipam-handle"):
		return "Windows"
	case strings.HasPrefix(handle, "lb-") && !strings.Contains(handle, "."):
		return "a service" // and no network or namespace of such a name
	case strings.Contains(handle, ".vmi."):
		return "a virtual machine"
	}
	return ""
}
