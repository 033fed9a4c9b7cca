package reaper

import "time"

// nodeMinAge is the age below which no allocation on a node is suspected. A runtime calls
// the network's ADD before it stores the sandbox, and the kubelet gives it twice two
// minutes for that.
const nodeMinAge = 10 * time.Minute

// ofPods returns the rule for the allocations about which pods decide. The container
// runtime knows better of its own sandboxes.
func ofPods(rule func(*Facts, *Allocation) (Ruling, bool)) func(*Facts, *Allocation) (Ruling, bool) {
	return func(f *Facts, a *Allocation) (Ruling, bool) {
		if a.ByRuntime {
			return noMatch()
		}
		return rule(f, a)
	}
}

// minAge returns the age below which the allocation is not suspected.
func (f *Facts) minAge(a *Allocation) time.Duration {
	minAge := f.terms(a).MinAge
	if a.ByRuntime {
		return max(minAge, nodeMinAge)
	}
	return minAge
}

func sandboxPresent(f *Facts, a *Allocation) (Ruling, bool) {
	if !a.ByRuntime || a.Blank || !f.census.sandboxes.has(a.Owner.Sandbox) {
		return noMatch()
	}
	return match("", Evidence{fromRuntime, "it has the sandbox " + a.Owner.Sandbox})
}

// sandboxGone waits as if an allocation without a time had been made when a run first saw it.
// One that is blank leaked as soon as its ADD broke off, and waits until it is older than an ADD
// can take.
func sandboxGone(f *Facts, a *Allocation) (Ruling, bool) {
	if !a.ByRuntime {
		return noMatch()
	}
	var least time.Duration
	switch {
	case a.Created.IsZero():
		least = f.minAge(a)
	case a.Blank && !a.Created.After(f.now):
		least = a.Created.Add(f.minAge(a)).Sub(f.since(a))
	}
	if a.Blank {
		const says = "an ADD broke off before it wrote an owner"
		return f.ripen(a, least, says, Evidence{fromStore, says})
	}
	return f.ripen(a, least, "", Evidence{fromRuntime, "it does not have the sandbox " + a.Owner.Sandbox})
}
