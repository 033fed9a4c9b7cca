package census

import (
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A population is an index of a list of pods.
type population struct {
	began  time.Time     // when the reading of the list began
	took   time.Duration // the reading of the list; 0 if it is not known
	listed podIndex

	unfinished int // the pods that are not finished

	// The pods that may have addresses which they do not show. Those that are starting are counted by
	// node, and not under hidden. The veiled ones are also counted under hidden.
	hidden   int
	starting map[string]int
	veiled   []ipam.PodRef

	// The pods that show too much: those that are not finished, and those that are.
	crowded, crowdedEnded excess
}

// newPopulation indexes a complete list of pods.
func newPopulation(began time.Time, pods []Pod) population {
	p := population{
		began:    began,
		listed:   newPodIndex(pods),
		starting: make(map[string]int),
	}
	for _, pod := range pods {
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
