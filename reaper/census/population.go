package census

import (
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A population is an index of a list of pods. The zero population has none. It is safe for
// concurrent use.
type population struct {
	began time.Time // when the reading of the list began

	// The positions of the pods in the list, by each of these; only the first of a sandbox.
	byName    map[ipam.PodRef]int32
	bySandbox map[string]int32

	unfinished int // the pods that are not finished

	// The pods that may have addresses that they do not show. Those that are starting are
	// counted by node, and not under hidden. The veiled ones are also counted under hidden.
	hidden   int
	starting map[string]int
	veiled   []ipam.PodRef

	// The pods that show too much: those that are not finished, and those that are.
	crowded, crowdedEnded excess
}

// newPopulation indexes a complete list of pods.
func newPopulation(began time.Time, pods []Pod) population {
	p := population{
		began: began, byName: make(map[ipam.PodRef]int32, len(pods)), bySandbox: make(map[string]int32), starting: make(map[string]int),
	}
	for n, pod := range pods {
		i := int32(n)
		p.byName[pod.Ref] = i
		if _, known := p.bySandbox[pod.Sandbox]; pod.Sandbox != "" && !known {
			p.bySandbox[pod.Sandbox] = i
		}
		p.count(pod)
	}
	return p
}

// count adds a pod to the numbers and names of the population.
func (p *population) count(pod Pod) {
	switch {
	case pod.TooMuch && pod.Finished:
		p.crowdedEnded.add(pod.Ref.Namespace, "pod "+pod.Ref.String())
	case pod.TooMuch:
		p.crowded.add(pod.Ref.Namespace, "pod "+pod.Ref.String())
	}
	if !pod.Finished {
		p.unfinished++
	}
	if pod.veiled() && !pod.Finished {
		p.veiled = append(p.veiled, pod.Ref)
	}
	switch {
	case pod.AddressUnknown && pod.Starting:
		p.starting[pod.Node]++
	case pod.hides() && !pod.Finished:
		p.hidden++
	}
}

// An excess has the pods or the virtual machines that show more addresses than are read.
// An address that was not read may be that of any allocation that names a pod of the same
// namespace, or no pod. So a tenant cannot keep what names a pod of another namespace.
type excess struct {
	names []string          // of all
	first map[string]string // the first name of each namespace, and of all under ""
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
