package reaper

import "slices"

// sharers finds the allocations that share the name of a sandbox, or of a group. In a
// damaged store, thousands of pods share one, so each is found by its pod too.
type sharers struct {
	all      []*Allocation // in the order of the listing
	groups   bool          // the names are those of groups
	byPod    positions[share]
	nameless bool              // some allocation names no pod
	whole    positions[string] // by the name alone; empty if all of them name pods
}

// A share is what one pod has of a name, or what no pod has.
type share struct {
	name string
	pod  PodRef
}

// newSharers returns the sharers of sandboxes, or of groups. An allocation without a name
// shares nothing.
func newSharers(all []*Allocation, groups bool) sharers {
	s := sharers{all: all, groups: groups, byPod: newPositions[share](len(all))}
	s.nameless = slices.ContainsFunc(all, func(a *Allocation) bool { return a.Owner.Pod == PodRef{} })
	if s.nameless {
		s.whole = newPositions[string](len(all))
	}
	for i, a := range slices.Backward(all) {
		shared := s.name(a)
		if shared == "" {
			continue
		}
		s.byPod.put(i, share{shared, a.Owner.Pod})
		if s.nameless {
			s.whole.put(i, shared)
		}
	}
	return s
}

// name returns the name of the allocation; empty if it has none.
func (s *sharers) name(a *Allocation) string {
	if s.groups {
		return a.Group
	}
	return a.Owner.Sandbox
}

// others adds to found the other allocations of a name that may be of the same pod as the
// given one, in the order of the listing. Those are the ones that name its pod, or no pod; all
// if the given one names none.
func (s *sharers) others(found []*Allocation, a *Allocation, name string) []*Allocation {
	if name == "" {
		return found
	}
	pod, none := a.Owner.Pod, PodRef{}
	var room [8]int // so that few siblings cost no memory
	for _, i := range s.near(room[:0], name, pod) {
		o := s.all[i]
		itself := o.Backend == a.Backend && o.Pool == a.Pool && o.Key == a.Key
		if !itself && s.name(o) == name && (pod == none || o.Owner.Pod == none || o.Owner.Pod == pod) {
			found = append(found, o)
		}
	}
	return found
}

// near adds to at the positions of the allocations of a name that may be of a pod, and maybe
// of others, in ascending order.
func (s *sharers) near(at []int, name string, pod PodRef) []int {
	switch {
	case pod == PodRef{} && s.nameless:
		return slices.AppendSeq(at, s.whole.at(name))
	case pod == PodRef{}: // who asks is not among the allocations
		for i := range s.all {
			at = append(at, i)
		}
		return at
	}
	for i := range s.byPod.at(share{name, pod}) {
		at = append(at, i)
	}
	if s.nameless {
		at = slices.AppendSeq(at, s.byPod.at(share{name: name}))
		slices.Sort(at)
		at = slices.Compact(at) // both keys may have the same hash
	}
	return at
}
