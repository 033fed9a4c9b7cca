package reaper

import (
	"cmp"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// An excess has the pods or the virtual machines that show more addresses than are read.
// An address that was not read may be that of any allocation that names a pod of the same
// namespace, or no pod. So a tenant keeps nothing that names a pod of another namespace.
type excess struct {
	names []string          // of all
	first map[string]string // the first name of each namespace, and of all by ""
}

// add adds the name of a pod or a virtual machine.
func (e *excess) add(namespace, name string) {
	if e.first == nil {
		e.first = make(map[string]string)
	}
	e.names = append(e.names, name)
	for _, in := range []string{namespace, ""} {
		if first := e.first[in]; first == "" || name < first {
			e.first[in] = name
		}
	}
}

// mayHave returns the name of a pod or a virtual machine that may have the allocation's
// address, because it shows more addresses than are read; empty if there is none.
// As for other evidence, a finished pod counts only for an allocation that names no pod, and
// only if the policy holds the addresses of finished pods.
func (f *Facts) mayHave(a *Allocation) string {
	in := a.Owner.Pod.Namespace
	if a.Inferred || a.Protects != nil {
		in = ""
	}
	c := f.census
	name := cmp.Or(c.crowded.first[in], c.guests.first[in])
	if in == "" && f.policy.Pods.Finished != policy.Release {
		name = cmp.Or(name, c.crowdedEnded.first[""])
	}
	return name
}

// tooMuch matches if the address may be one of those that were not read.
func tooMuch(f *Facts, a *Allocation) (Ruling, bool) {
	if !a.holdsAddress() && a.Protects == nil {
		return noMatch()
	}
	name := f.mayHave(a)
	if name == "" {
		return noMatch()
	}
	note := name + " shows more addresses than are read"
	return match(note, Evidence{name, "it shows more addresses than are read, and this may be one of them"})
}

// warnOfExcess warns of the pods and the virtual machines that show too much.
func (r *run) warnOfExcess(c Census) {
	names := slices.Concat(c.crowded.names, c.guests.names)
	if r.Policy.Pods.Unnamed == policy.Release && r.Policy.Pods.Finished != policy.Release {
		names = append(names, c.crowdedEnded.names...)
	}
	slices.Sort(names)
	if len(names) > 0 {
		r.warn("what names a pod of the same namespace, or no pod, is kept, since more addresses than are read are shown by " + printable.Some(names))
	}
}
