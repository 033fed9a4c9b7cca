package report

import (
	"cmp"
	"math/big"
	"slices"
	"time"
)

// A Schedule is what a CronJob that starts runs says of itself.
type Schedule struct {
	Name      string `json:"name"`               // with its namespace
	Cron      string `json:"cron"`               // such as "7,22,37,52 * * * *"
	TimeZone  string `json:"timeZone,omitempty"` // empty for that of the controllers
	Suspended bool   `json:"suspended"`
	DryRun    bool   `json:"dryRun"`  // by its arguments; otherwise its policy decides
	Running   bool   `json:"running"` // a run of it has not ended

	// The times are null if there is none, or if it is unknown.
	LastRun     *time.Time `json:"lastRun"`
	LastSuccess *time.Time `json:"lastSuccess"`
	Next        *time.Time `json:"next"`
}

// CronJobs are those that start runs.
type CronJobs struct {
	Schedules []Schedule `json:"schedules,omitempty"`
	Unknown   string     `json:"schedulesUnknown,omitempty"` // why they are
}

// A Scarce is a network, or a part of one, that has few free addresses, or for which pods wait.
type Scarce struct {
	Place

	// WaitingPods ask for an address of it and have none: some of those that wait.
	WaitingPods []string `json:"waitingPods"`

	Forecast *Forecast `json:"forecast"` // null if there is none
}

// soon is how long before it is full a network is scarce, however much of it is free.
const soon = 24 * time.Hour

// Scarce returns the open networks of whose addresses less than a tenth is free, or that are full soon, and those for which some pods wait. The
// command is that of a run on the same cluster.
func (r Report) Scarce(asking []Asking, command []string) []Scarce {
	scarce, forecasts := []Scarce{}, r.forecasts()
	add := func(p Place) *Scarce {
		i := slices.IndexFunc(scarce, func(s Scarce) bool {
			return s.Backend == p.Backend && s.Name == p.Name && slices.Equal(s.Part, p.Part)
		})
		if i < 0 {
			i, scarce = len(scarce), append(scarce, Scarce{p, []string{}, forecasts[useName(p.Backend, p.Name)]})
		}
		return &scarce[i]
	}
	for _, a := range asking {
		its, _ := Explain(r, Question{Namespace: a.Namespace, Pod: a.Pod}, []Asking{a}, command) // the pod exists
		for _, p := range its.Places {
			if !p.OnlyTold {
				s := add(p)
				s.WaitingPods = append(s.WaitingPods, a.Namespace+"/"+a.Pod)
			}
		}
	}
	for _, n := range r.Networks {
		for _, seen := range n.asPodsSeeIt(n.Attachments) {
			f := forecasts[useName(n.Backend, n.Name)]
			if seen.runsDry() || f != nil && f.Full.Sub(r.Run.StartedAt) < soon {
				add(r.place(command, seen))
			}
		}
	}
	slices.SortStableFunc(scarce, func(a, b Scarce) int {
		return cmp.Or(a.order()-b.order(), byFree(a.Usage, b.Usage), cmp.Compare(len(b.WaitingPods), len(a.WaitingPods)))
	})
	return scarce
}

// byFree orders what has fewer free addresses first, and what is unknown last.
func byFree(a, b Usage) int {
	switch {
	case a.Free != nil && b.Free != nil:
		return a.Free.Cmp(b.Free)
	case a.Free != nil:
		return -1
	case b.Free != nil:
		return 1
	}
	return 0
}

// runsDry reports whether less than a tenth of the addresses is known to be free.
func (n NetworkReport) runsDry() bool {
	return n.Closed == "" && n.Free != nil && n.Capacity != nil && new(big.Int).Mul(n.Free, big.NewInt(10)).Cmp(n.Capacity) < 0
}

// An AilingNode is a node that is not ready or does not exist, with the addresses that may wait for it.
type AilingNode struct {
	Name   string `json:"name"`
	State  string `json:"state"` // that of Report.NodeState
	Fenced bool   `json:"fenced"`

	// Leaked counts the leaked addresses of its pods, and Held those of them that are kept for another reason than
	// their grace period.
	Leaked int `json:"leaked"`
	Held   int `json:"held"`

	// Live counts the addresses in use of pods that are listed on the node, which fencing deletes.
	Live int `json:"live"`
}

// AilingNodes returns the nodes that are not ready, and those that do not exist and have leaked addresses, those with
// most first. There is none if the nodes are unknown.
func (r Report) AilingNodes() []AilingNode {
	ailing := []AilingNode{}
	if r.Living == nil {
		return ailing
	}
	live, leaked := r.live(), r.LeakedBy(func(e Entry) string { return e.Owner.Node })
	for name := range r.Living.Nodes() {
		if leaked[name] == nil {
			leaked[name] = new(Leaked)
		}
	}
	for name, counts := range leaked {
		if state := r.NodeState(name); state != "" {
			ailing = append(ailing, AilingNode{name, state, r.Living.Fenced(name), counts.Total, counts.Held, live[name]})
		}
	}
	slices.SortFunc(ailing, func(a, b AilingNode) int {
		return cmp.Or(cmp.Compare(b.Leaked+b.Live, a.Leaked+a.Live), cmp.Compare(a.Name, b.Name))
	})
	return ailing
}
