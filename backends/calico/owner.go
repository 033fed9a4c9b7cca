package calico

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The keys of a block's attributes (AttributePod and others in libcalico-go).
const (
	attrPod       = "pod"
	attrNamespace = "namespace"
	attrNode      = "node" // Calico's name for the node
	attrTimestamp = "timestamp"
	attrType      = "type" // the kind of owner, if not a pod
	attrService   = "service"
)

// timestampLayout is the layout of Go's time.Time.String. Calico has stored it
// since 3.18, in UTC and by the node's clock.
const timestampLayout = "2006-01-02 15:04:05.999999999 -0700 MST"

// An attribute is the owner of an allocation (AllocationAttribute in libcalico-go).
// Several allocations may share one.
type attribute struct {
	Handle    *string           `json:"handle_id"`
	Active    map[string]string `json:"secondary"`
	Alternate map[string]string `json:"alternateOwnerAttrs"`

	// The time at which the address was freed. Calico gives the address to no pod
	// until it has rested. If the field has any value, the entry has no owner.
	Released json.RawMessage `json:"releasedAt"`
}

// isSandboxID reports whether a text has the form of the sandbox IDs that
// containerd, CRI-O and dockershim make: 64 lower-case hexadecimal digits.
func isSandboxID(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// handle returns the ID of the handle; empty if there is none. An allocation
// migrated from host-local may have a carriage return and an interface name after
// it, which Calico does not count as part of the ID either.
func (a attribute) handle() string {
	if a.Handle == nil {
		return ""
	}
	id, _, _ := strings.Cut(*a.Handle, "\r")
	return id
}

// pod returns the pod that the attributes name; the zero PodRef if they name none. The namespace may
// be that of a service.
func (a attribute) pod() ipam.PodRef {
	if a.Active[attrPod] == "" && a.Active[attrService] != "" {
		return ipam.PodRef{}
	}
	return ipam.PodRef{Namespace: a.Active[attrNamespace], Name: a.Active[attrPod]}
}

// sandboxOf returns the sandbox in a handle <network>.<sandbox> of the pod, if that is known. The
// network's name may contain dots. It returns an empty string for a handle <namespace>.<pod>, which
// Calico v2 wrote, and for any other form: the pod would seem to have replaced that sandbox.
func sandboxOf(handle string, pod ipam.PodRef) string {
	dot := strings.LastIndexByte(handle, '.')
	if dot < 0 || !isSandboxID(handle[dot+1:]) || handle == pod.Namespace+"."+pod.Name {
		return ""
	}
	return handle[dot+1:]
}

// foreign describes the owner of the address if it is not a pod. Otherwise it
// returns an empty string.
func (a attribute) foreign() string {
	switch {
	case len(a.Released) > 0 && string(a.Released) != "null":
		return "no owner: Calico keeps a released address back for a while"
	case a.Active[attrService] != "":
		return "the service " + strings.TrimPrefix(a.Active[attrNamespace]+"/"+a.Active[attrService], "/")
	case a.Active[attrType] != "":
		return "an owner of Calico's type " + a.Active[attrType]
	case len(a.Alternate) > 0:
		return "a virtual machine that moves to another pod"
	case cmp.Or(a.Active["vmi-name"], a.Active["vmi-uid"], a.Active["vm-uid"], a.Active["vmim-uid"]) != "":
		return "a virtual machine"
	}
	return cmp.Or(a.Active["note"], foreignHandle(a.handle()))
}

// foreignHandle describes the owner if the ID shows that it is not a pod.
// Otherwise it returns an empty string.
func foreignHandle(handle string) string {
	switch {
	case strings.Contains(handle, "-tunnel-addr-"):
		return "a tunnel"
	case strings.EqualFold(handle, "windows-reserved-ipam-handle"):
		return "Windows"
	case strings.HasPrefix(handle, "lb-") && !strings.Contains(handle, "."):
		return "a service" // with a dot, lb-… is the name of a network or namespace
	case strings.Contains(handle, ".vmi."):
		return "a virtual machine"
	}
	return ""
}
