package reaper

import (
	"encoding/json"
	"math/big"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// A Report is what a run saw, decided and did. It is true whatever failed:
// what was released is in it even when a later step failed. Its JSON form is a
// contract that users script against.
type Report struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Run        RunInfo         `json:"run"`
	Summary    Counts          `json:"summary"`
	Backends   []BackendReport `json:"backends"`
	Pools      []PoolReport    `json:"pools"`
	Entries    []Entry         `json:"entries"`

	// Warnings are sentences about the run as a whole.
	Warnings []string `json:"warnings,omitempty"`
}

// RunInfo says which run this was.
type RunInfo struct {
	ID         string    `json:"id"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	DryRun     bool      `json:"dryRun"`
	Version    string    `json:"version"`
	Cluster    string    `json:"cluster"` // the API server's address
}

// Counts are numbers of allocations. Every allocation is in exactly one of
// InUse, Held, Suspected and Planned; what was planned may also be Released,
// Changed or Failed.
type Counts struct {
	Entries   int `json:"entries"`
	InUse     int `json:"inUse"`
	Held      int `json:"held"`
	Suspected int `json:"suspected"`
	Planned   int `json:"planned"`
	Released  int `json:"released"`
	Changed   int `json:"changed"` // also those whose owner came back
	Failed    int `json:"failed"`
}

// BackendReport is how one backend did.
type BackendReport struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Message string `json:"message,omitempty"`
	Counts
}

// PoolReport is how full one pool was, and is as far as this run's releases
// go: what others took or gave back meanwhile is not in it. In a dry run the
// planned releases count.
type PoolReport struct {
	Backend         string   `json:"backend"`
	Name            string   `json:"name"`
	Range           string   `json:"range"`
	Capacity        *big.Int `json:"capacity"` // null if unknown
	AllocatedBefore int      `json:"allocatedBefore"`
	AllocatedAfter  int      `json:"allocatedAfter"`
}

// An Outcome is what became of a allocation.
type Outcome string

// The outcomes.
const (
	Kept     Outcome = "kept"
	Planned  Outcome = "planned"  // a real run would release it
	Released Outcome = "released" // the store does not hold it any more
	Changed  Outcome = "changed"  // it changed hands meanwhile, and stays
	Returned Outcome = "returned" // its owner came back meanwhile, and has it
	Failed   Outcome = "failed"   // not known to be released
)

// An Entry is one allocation with its verdict.
type Entry struct {
	Backend   string     `json:"backend"`
	Pool      string     `json:"pool"`
	Key       string     `json:"key"`
	IP        string     `json:"ip"` // empty where it could not be read
	Owner     EntryOwner `json:"owner"`
	Verdict   Verdict    `json:"verdict"`
	Reason    Reason     `json:"reason"`
	Note      string     `json:"note,omitempty"`
	Evidence  []Evidence `json:"evidence,omitempty"`
	FirstSeen *time.Time `json:"firstSeen,omitempty"`
	Due       *time.Time `json:"due,omitempty"`
	Outcome   Outcome    `json:"outcome"`
	Error     string     `json:"error,omitempty"`
}

// EntryOwner is whom the store gave the address to, as far as it says.
type EntryOwner struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Sandbox   string `json:"sandbox,omitempty"`
	Interface string `json:"interface,omitempty"`
	Node      string `json:"node,omitempty"`
}

// Brief returns the report without the entries that are in use, on which
// everybody agrees and with which nothing was done.
func (r Report) Brief() Report {
	brief := make([]Entry, 0, len(r.Entries))
	for _, e := range r.Entries {
		if e.Verdict != InUse || e.Note != "" || e.Outcome != Kept {
			brief = append(brief, e)
		}
	}
	r.Entries = brief
	return r
}

// MarshalJSON writes the status as its word.
func (s Status) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalJSON writes the verdict as its word.
func (s Verdict) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// newReport tells what was listed.
func newReport(info RunInfo, inv Inventory) Report {
	r := Report{
		APIVersion: policy.APIVersion,
		Kind:       "ReapReport",
		Run:        info,
		Backends:   make([]BackendReport, 0, len(inv.Listings)),
		Pools:      []PoolReport{},
		Entries:    []Entry{},
	}
	for _, l := range inv.Listings {
		r.Backends = append(r.Backends, BackendReport{Name: l.Backend, Status: l.Status, Message: l.Message})
		for _, u := range l.Pools {
			if u.Range.IsValid() {
				r.Pools = append(r.Pools, PoolReport{
					Backend: l.Backend, Name: u.Name, Range: u.Range.String(),
					Capacity: u.Capacity, AllocatedBefore: len(u.Allocations),
				})
			}
		}
	}
	return r
}

// tell adds what the verdicts were, with nothing done yet.
func (r *Report) tell(decisions []Decision) {
	r.Entries = make([]Entry, 0, len(decisions))
	for _, v := range decisions {
		r.Entries = append(r.Entries, newEntry(v))
	}
}

// resume puts what earlier looks of the same run released before the entries. The
// pools were fuller by that before.
func (r *Report) resume(earlier []Entry) {
	if len(earlier) == 0 {
		return
	}
	r.Entries = slices.Concat(earlier, r.Entries)
	taken := make(map[[2]string]int)
	for _, e := range earlier {
		taken[[2]string{e.Backend, e.Pool}]++
	}
	for i := range r.Pools {
		p := &r.Pools[i]
		p.AllocatedBefore += taken[[2]string{p.Backend, p.Name}]
	}
}

// newEntry is a verdict as the report tells it; zero times are left out.
func newEntry(v Decision) Entry {
	res := v.Allocation
	e := Entry{
		Backend: res.Backend, Pool: res.Pool, Key: res.Key,
		Owner: EntryOwner{
			res.Owner.Pod.Namespace, res.Owner.Pod.Name, res.Owner.Sandbox,
			res.Owner.Interface, res.Owner.Node,
		},
		Verdict: v.Verdict, Reason: v.Reason, Note: v.Note, Evidence: v.Evidence, Outcome: Kept,
	}
	if res.IP.IsValid() {
		e.IP = res.IP.String()
	}
	if !v.Due.IsZero() {
		e.FirstSeen, e.Due = &v.FirstSeen, &v.Due
	}
	return e
}
