package census

import (
	"regexp"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// unread says which lists a census lacks. Only files lack some: see ipam.UnreadError.
type unread struct{ nodes, sets, machines bool }

// ordinal ends the names of the pods of StatefulSets.
var ordinal = regexp.MustCompile(`-[0-9]+$`)

// Unread returns the list that the census lacks and that has something which may keep the allocation; nil if
// there is none.
func (c Census) Unread(a *ipam.Allocation) *ipam.UnreadError {
	switch {
	case c.unread.nodes:
		return &ipam.UnreadError{List: "nodes"}
	case c.unread.sets && !a.NeverAdopted() && ordinal.MatchString(a.Owner.Pod.Name):
		return &ipam.UnreadError{List: "StatefulSets"}
	case c.unread.machines && strings.HasPrefix(a.Owner.Pod.Name, "virt-launcher-"):
		return &ipam.UnreadError{List: "VirtualMachineInstances"}
	}
	return nil
}

// orUnread returns the error of a list with the name of its resource, but notes one that says that
// files lack the list: what may be in it is kept.
func orUnread(unread *bool, resource string, err error) error {
	if *unread = ipam.IsUnread(err); *unread {
		return nil
	}
	return listed(resource, err)
}
