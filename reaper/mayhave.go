package reaper

import (
	"cmp"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

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
	name := c.ShowingTooMuch(in)
	if in == "" && f.policy.Pods.Finished != policy.Release {
		name = cmp.Or(name, c.EndedShowingTooMuch())
	}
	return name
}

// tooMuch matches if the address may be one of those that were not read.
func tooMuch(f *Facts, a *Allocation) (Ruling, bool) {
	if !a.HoldsAddress() && a.Protects == nil {
		return noMatch()
	}
	name := f.mayHave(a)
	if name == "" {
		return noMatch()
	}
	note := name + " shows more addresses than are read"
	return match(note, Evidence{name, "it shows more addresses than are read, and this may be one of them"})
}

// ExcessWarnings names the pods and the virtual machines that show too much.
func ExcessWarnings(p policy.Policy, c Census) []string {
	names := c.AllShowingTooMuch(p.Pods.Unnamed == policy.Release && p.Pods.Finished != policy.Release)
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []string{"what names a pod of the same namespace, or no pod, is kept, since more addresses than are read are shown by " + printable.Some(names)}
}
