package reaper

import "time"

// A population is an index of a list of pods.
type population struct {
	began   time.Time     // when the reading of the list began
	version uint64        // of the list; 0 if it is not known. See Follower
	took    time.Duration // the reading of the list; 0 if it is not known
	listed  podIndex
	changed *changes // overrides the list; nil if the pods are not followed

	unfinished int // the pods that are not finished

	// The pods that may have addresses which they do not show. Those that are starting are counted by
	// node, and not under hidden. The veiled ones are also counted under hidden.
	hidden   int
	starting map[string]int
	veiled   []PodRef // of the list
	behind   int      // how many are veiled, with the changes

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
		p.addCrowded(pod)
		if pod.veiled() && !pod.Finished {
			p.veiled = append(p.veiled, pod.Ref)
		}
		p.count(pod, 1)
	}
	return p
}

// addCrowded adds the pod to those that show too much, if it does.
func (p *population) addCrowded(pod Pod) {
	switch {
	case pod.TooMuch && pod.Finished:
		p.crowdedEnded.add(pod.Ref.Namespace, "pod "+pod.Ref.String())
	case pod.TooMuch:
		p.crowded.add(pod.Ref.Namespace, "pod "+pod.Ref.String())
	}
}

// count adds a pod to the numbers of pods, or subtracts it: by is 1 or -1.
func (p *population) count(pod Pod, by int) {
	if !pod.Finished {
		p.unfinished += by
	}
	if pod.veiled() && !pod.Finished {
		p.behind += by
	}
	switch {
	case pod.AddressUnknown && pod.Starting:
		if p.starting[pod.Node] += by; p.starting[pod.Node] == 0 {
			delete(p.starting, pod.Node)
		}
	case pod.hides() && !pod.Finished:
		p.hidden += by
	}
}
