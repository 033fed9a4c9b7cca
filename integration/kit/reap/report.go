package reap

import "encoding/json"

// A Report is a run's report in JSON, as far as tests look at it. It is defined here a second time,
// and not taken from the program, because scripts depend on it: renaming a field there must fail
// here.
type Report struct {
	Comparison struct {
		Missing   string
		Due, Held int
		Changes   []struct {
			Owner           struct{ Pod string }
			Installed, File struct{ Reason string }
		}
	}

	Kind     string    `json:"kind"`
	Run      Run       `json:"run"`
	Summary  Summary   `json:"summary"`
	Backends []Backend `json:"backends"`
	Networks []Network `json:"networks"`
	Pools    []Pool    `json:"pools"`
	Entries  []Entry   `json:"entries"`
	Findings []Finding `json:"findings"`
	Warnings []string  `json:"warnings"`
}

// A Finding says what is wrong with an address that pods show.
type Finding struct {
	Kind    string  `json:"kind"` // duplicate, unrecorded
	IP      string  `json:"ip"`
	Network string  `json:"network"`
	Claims  []Claim `json:"claims"`

	Stored []string `json:"stored"` // the pods for which the store has it
}

// A Claim is that of a pod that shows an address.
type Claim struct {
	Pod    string `json:"pod"`
	Proved bool   `json:"proved"`
}

// A Run says which run it was and what it ran against.
type Run struct {
	ID      string   `json:"id"`
	DryRun  bool     `json:"dryRun"`
	Caveats []string `json:"caveats"`
	Version string   `json:"version"`
	Cluster string   `json:"cluster"`
}

// A Summary counts allocations.
type Summary struct {
	Entries   int `json:"entries"`
	InUse     int `json:"inUse"`
	Held      int `json:"held"`
	Suspected int `json:"suspected"`
	Planned   int `json:"planned"`
	Released  int `json:"released"`
	Changed   int `json:"changed"`
	Deleting  int `json:"deleting"`
	Failed    int `json:"failed"`
}

// A Backend says how the listing of one store went, and counts its allocations.
type Backend struct {
	Name      string   `json:"name"`
	Status    string   `json:"status"` // ok, partial, failed, skipped
	Message   string   `json:"message"`
	Undecoded []string `json:"undecoded"` // objects that may protect addresses
	Summary
}

// A Pool says how full one pool is.
type Pool struct {
	Backend  string      `json:"backend"`
	Name     string      `json:"name"`
	Range    string      `json:"range"`
	Capacity json.Number `json:"capacity"` // may be more than any integer; empty if unknown
	Used     int         `json:"used"`
	Free     json.Number `json:"free"` // empty if unknown
}

// A Network says how full one range is that pods get addresses from.
type Network struct {
	Backend  string      `json:"backend"`
	Name     string      `json:"name"`
	Range    string      `json:"range"`
	Capacity json.Number `json:"capacity"` // empty if unknown
	Used     int         `json:"used"`
	Leaked   int         `json:"leaked"`
	Blocked  int         `json:"blocked"`
	Free     json.Number `json:"free"` // empty if unknown
	Pools    []string    `json:"pools"`
	Blocks   *struct {
		Missing   int         `json:"missing"`
		Unclaimed json.Number `json:"unclaimed"`
		MayBorrow *bool       `json:"mayBorrow"`
		Without   *int        `json:"nodesWithoutRoom"`
	} `json:"blocks"`
}

// An Entry says what was decided about one allocation and what became of it.
type Entry struct {
	Backend  string `json:"backend"`
	Pool     string `json:"pool"`
	Key      string `json:"key"` // the entry's own name in the pool
	IP       string `json:"ip"`
	Owner    Owner  `json:"owner"`
	Decision string `json:"verdict"` // inUse, held, suspected, orphan
	Reason   string `json:"reason"`
	Note     string `json:"note"`
	Outcome  string `json:"outcome"` // kept, planned, refused, released, changed, returned, failed
	Error    string `json:"error"`
}

// An Owner is the owner that the store names.
type Owner struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Sandbox   string `json:"sandbox"`
	Interface string `json:"interface"`
	Node      string `json:"node"`
}
