// Package report is what a run says, as a value: the outcome of each allocation, what is leaked,
// how full pools and networks are, and what is made from that, such as an explanation. It is
// made once, and package print has its formats.
package report

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A Report has what a run listed, decided and released. It is true with any error: it
// has every release, even if a later step failed. Its JSON form is a contract that users
// script against.
type Report struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Run        RunInfo `json:"run"`

	// Result is how the run ended.
	Result Result `json:"result"`

	// Leaked counts the addresses without an owner. It is null if that is not known:
	// the pods could not be listed, or no store could.
	Leaked *Leaked `json:"leaked"`

	Summary  Counts          `json:"summary"` // of allocations
	Backends []BackendReport `json:"backends"`
	Layout
	Entries []Entry `json:"entries"`

	// Findings are what is wrong with addresses that pods show. No verdict rests on them.
	Findings []Finding `json:"findings"`

	// Comparison says how a dry run by a policy file differs from the installed policy; nil for other
	// runs.
	Comparison *Comparison `json:"comparison,omitempty"`

	// Warnings are sentences about the run as a whole.
	Warnings []string `json:"warnings,omitempty"`

	// Living is what the run knows of the cluster; nil if the pods could not be listed, or if the
	// run is on a node, where it may not have asked for them.
	Living *census.Census `json:"-"`

	// Totals count what all runs did, this one included; nil if the ledger is not known to count it.
	Totals *ledger.Totals `json:"-"`

	// Uses are those of earlier runs, the latest last.
	Uses []ledger.Use `json:"-"`
}

// An Origin says who runs which program from where, and on which cluster or node.
type Origin struct {
	Version string `json:"version"`
	Cluster string `json:"cluster"` // the API server's address

	// Stores says where the stores are that may be in one of several places, by backend.
	Stores map[string]string `json:"stores,omitempty"`

	// Node is the name of the node whose stores the run is about; empty for the stores of
	// a cluster. Then Cluster is empty if no API server was asked for the pods of the node.
	Node string `json:"node,omitempty"`

	// Program has the words that start the program, such as "kubectl ip-reaper".
	Program string `json:"program,omitempty"`

	// Kubeconfig is the file that was given by --kubeconfig; empty if none was.
	Kubeconfig string `json:"kubeconfig,omitempty"`

	// Context is the kubeconfig context; empty inside a cluster and for files.
	Context string `json:"context,omitempty"`

	// KnownAs is the context that people have for the cluster of a run inside it; empty if nobody has said so.
	KnownAs string `json:"-"`

	// ClientFlags are the words of the other flags that say who asks which API server, such as --as
	// jane, for the commands that people type next. kubectl has the same flags.
	ClientFlags []string `json:"-"`

	// By says who started the run: see journal.Run.
	By string `json:"-"`

	// StateNamespace is the namespace of ledger, lock and journals; empty for files.
	StateNamespace string `json:"stateNamespace,omitempty"`

	// NoState is set if that namespace does not exist, so nothing can be remembered or released.
	NoState bool `json:"noState,omitempty"`

	// Barred is set if nothing may be written, as long as the installed policy or the clock is as it is.
	Barred bool `json:"-"`

	// StateDir is the folder of ledger, lock and journals on a node; empty elsewhere.
	StateDir string `json:"stateDir,omitempty"`

	// Undated is set if the run read files that do not say when they were made, so when it started says
	// nothing about how long ago something in them was.
	Undated bool `json:"-"`
}

// RunInfo identifies a run.
type RunInfo struct {
	ID         string    `json:"id"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	DryRun     bool      `json:"dryRun"`
	Remember   bool      `json:"remember,omitempty"` // a dry run that saves the ledger
	Origin

	// LedgerUnread is set unless the ledger was read.
	LedgerUnread bool `json:"-"`

	// Denied is set if the run had no right to release what was due, and Unsaved if it could not save the ledger.
	Denied  bool `json:"-"`
	Unsaved bool `json:"-"`

	// Forgets is the longest wait of a dry run in which something became due only by what it saw and did not save; 0
	// otherwise.
	Forgets policy.Duration `json:"-"`

	// Selection says which allocations are in the report. The zero Selection: all.
	Selection judge.Selection `json:"selection,omitzero"`

	// Caveats are sentences that change what the figures mean, such as that the installed
	// policy could not be read. Text for people has them before the first line.
	Caveats []string `json:"caveats,omitempty"`

	// Policy has the terms by which most allocations were judged.
	Policy PolicyInfo `json:"policy"`

	// Memory is set if the times of the report outlast the run: an earlier run stored a
	// ledger, or this one does. Otherwise the next run begins every grace period again,
	// and no entry has FirstSeen and Due. If only an earlier run stored one, what leaked
	// since and waits has neither.
	Memory bool `json:"memory"`
}

// untimed reports whether what waits is not timed, and a run that remembers would time it.
func (r RunInfo) untimed() bool {
	return r.DryRun && !r.Memory && !r.NoState && !r.Barred && !r.LedgerUnread && !r.Unsaved && r.Place() != ""
}

// StateNamespace is where ledger, lock and journals are, unless a pod or a flag says
// otherwise.
const StateNamespace = "ip-reaper"

// Place names what the run is about, for journals: the API server's address, or a node.
func (o Origin) Place() string {
	if o.Node != "" {
		return "node " + o.Node
	}
	return o.Cluster
}

// PolicyInfo says by which policy a run judged.
type PolicyInfo struct {
	File        string          `json:"file,omitempty"`
	Installed   string          `json:"installed,omitempty"` // the ConfigMap, as namespace/name; without it and File, it is the default
	GracePeriod policy.Duration `json:"gracePeriod"`
	MinAge      policy.Duration `json:"minAge"`
}

// Counts are numbers of allocations. Every allocation is counted in exactly one of
// InUse, Held, Suspected and Planned. One in Planned may also be counted in Released,
// Changed, Deleting, NotBegun or Failed.
type Counts struct {
	Entries   int `json:"entries"`
	InUse     int `json:"inUse"`
	Held      int `json:"held"`
	Suspected int `json:"suspected"`
	Planned   int `json:"planned"`
	Released  int `json:"released"`
	Changed   int `json:"changed"` // including those whose owner came back
	Deleting  int `json:"deleting,omitzero"`
	NotBegun  int `json:"notBegun,omitzero"`
	Failed    int `json:"failed"`
}

// add counts one allocation.
func (c *Counts) add(v judge.Verdict, o Fate) {
	c.Entries++
	switch v {
	case judge.InUse:
		c.InUse++
	case judge.Suspected:
		c.Suspected++
	case judge.Orphaned:
		c.Planned++
	default:
		c.Held++
	}
	switch o {
	case Released:
		c.Released++
	case Changed, Returned:
		c.Changed++
	case Deleting:
		c.Deleting++
	case NotBegun:
		c.NotBegun++
	case Failed:
		c.Failed++
	default: // nothing was begun
	}
}

// A BackendReport has the status and the counts of one backend.
type BackendReport struct {
	Name    string      `json:"name"`
	Status  ipam.Status `json:"status"`
	Message string      `json:"message,omitempty"`

	// Failures has every failure of the listing, in its order: each pool that could not be
	// read. It is nil if there is none. The log and the error of a run count equal failures,
	// so the pools that they do not name are named here.
	Failures []string `json:"failures,omitempty"`

	// Undecoded has every object beside the pools that could not be decoded. The warnings
	// name only the first ones.
	Undecoded []string `json:"undecoded,omitempty"`

	// NotListed are networks of the store whose pools were not listed, as a warning says.
	NotListed []string `json:"notListed,omitempty"`

	Counts
}

// Counted reports whether the counts are known: the store was listed, or an earlier round
// of the run released something.
func (b BackendReport) Counted() bool {
	return b.Status == ipam.StatusOK || b.Status == ipam.StatusPartial || b.Entries > 0
}

// MarshalJSON leaves out counts that are not known.
func (b BackendReport) MarshalJSON() ([]byte, error) {
	type fields BackendReport // without this method
	shown := struct {
		fields
		*Counts // in place of those of fields
	}{fields: fields(b)}
	if b.Counted() {
		shown.Counts = &b.Counts
	}
	return json.Marshal(shown)
}

// A PoolReport says how full one pool was before and after this run's releases.
// Changes by other clients are not in it. In a dry run, the planned releases count.
type PoolReport struct {
	Backend string `json:"backend"`
	Name    string `json:"name"`
	Range   string `json:"range"`
	Node    string `json:"node,omitempty"`   // whose new pods get their addresses from it first
	Closed  string `json:"closed,omitempty"` // see NetworkReport
	Usage
	AllocatedBefore int `json:"allocatedBefore"`
	AllocatedAfter  int `json:"allocatedAfter"`

	// ProtectedBy names what protects every address of the pool, if addresses of the
	// pool have no owner and are kept for that. Then nothing in the pool is released.
	ProtectedBy string `json:"protectedBy,omitempty"`
}

// ref returns the pool as stores know it.
func (p PoolReport) ref() ipam.PoolRef { return ipam.PoolRef{Backend: p.Backend, Name: p.Name} }

// An Entry is one allocation with its decision and its outcome.
type Entry struct {
	Backend   string           `json:"backend"`
	Pool      string           `json:"pool"`
	Key       string           `json:"key"`
	IP        string           `json:"ip"` // empty if it has none, or could not be decoded
	Owner     ipam.EntryOwner  `json:"owner"`
	Verdict   judge.Verdict    `json:"verdict"`
	Reason    judge.Reason     `json:"reason"`
	Rule      int              `json:"rule,omitempty"`      // the number of the rule that matched, in docs/verdicts.md
	ChangedBy string           `json:"changedBy,omitempty"` // the step after the rules that changed the decision
	Leaked    bool             `json:"leaked"`              // it has no owner, whether it is kept or not
	Note      string           `json:"note,omitempty"`
	Endpoint  string           `json:"endpoint,omitempty"` // in Calico's etcd: what still has the address for the pod that is gone
	Evidence  []judge.Evidence `json:"evidence,omitempty"`
	Created   *time.Time       `json:"created,omitempty"` // when it was allocated, if the store says
	FirstSeen *time.Time       `json:"firstSeen,omitempty"`
	Due       *time.Time       `json:"due,omitempty"`
	Outcome   Fate             `json:"outcome"` // of its attempt; see Fate for what became of the allocation
	Error     string           `json:"error,omitempty"`

	Network string `json:"-"` // see ipam.Allocation
	ByName  bool   `json:"-"` // see judge.Ruling

	Adoptable bool          `json:"-"` // a later sandbox of the pod may get it
	Address   *Address      `json:"-"` // nil if it neither leaked nor may have, or has no address
	Ripe      time.Time     `json:"-"` // see judge.Subject
	Wait      time.Duration `json:"-"` // see judge.Verdicts
}

// pool returns the pool of the entry.
func (e *Entry) pool() ipam.PoolRef { return ipam.PoolRef{Backend: e.Backend, Name: e.Pool} }

// Brief returns the report without the entries that are in use and were kept, if they
// have no note.
func (r Report) Brief() Report {
	left := func(e Entry) bool { return e.Verdict == judge.InUse && e.Note == "" && e.Outcome == Kept }
	if slices.ContainsFunc(r.Entries, left) {
		r.Entries = slices.DeleteFunc(slices.Clone(r.Entries), left)
	}
	return r
}

// A Result says how a run ended. The zero Result is a run that did everything.
type Result struct {
	// ExitCode is that of the program. Package cli sets it.
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error,omitempty"`

	// Refused has every limit that refused the plan. If it is not empty, no part of the
	// plan was released, or would be.
	Refused []judge.Refusal `json:"refused,omitempty"`
}

// Leaked counts the addresses that have no owner, each once. Total is the sum of Due, Released,
// Waiting and Held.
type Leaked struct {
	Total    int `json:"total"`
	Due      int `json:"due"`      // the grace period is over, and a store still has it
	Released int `json:"released"` // by this run, from every store
	Waiting  int `json:"waiting"`  // the grace period is not over
	Held     int `json:"held"`     // kept for another reason

	// HeldBy has the reasons of Held, the most frequent one first.
	HeldBy []ReasonCount `json:"heldBy"`

	// Undecided counts the addresses that are kept because nobody can tell whether they leaked, such as those of an
	// unknown owner, and those that an ADD in progress may have, and
	// UndecidedBy has the reasons, the most frequent one first. They are in none of the other figures.
	Undecided   int           `json:"undecided"`
	UndecidedBy []ReasonCount `json:"undecidedBy"`

	// Allocations counts the allocations without an owner. WithoutAddress counts those that
	// hold no address, such as empty handles; they are in none of the other figures.
	Allocations    int `json:"allocations"`
	WithoutAddress int `json:"withoutAddress"`
}

// A ReasonCount is how many addresses have a reason.
type ReasonCount struct {
	Reason judge.Reason `json:"reason"`
	Count  int          `json:"count"`
}

// Risks counts the addresses that are due, or were until they were released, by what alone is the cause: that a node
// was fenced, or that the policy releases them. The most frequent one comes first.
func (r Report) Risks() []string {
	counts := r.LeakedBy(func(e Entry) string { return judge.DueBecause(e.Evidence) })
	delete(counts, "")
	var risks []string
	for _, because := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b].Total, counts[a].Total), cmp.Compare(a, b))
	}) {
		if n := counts[because].Due + counts[because].Released; n > 0 && r.Leaked != nil {
			risks = append(risks, printable.Thousands(n)+" of "+printable.Thousands(r.Leaked.Due+r.Leaked.Released)+" became due only because "+because)
		}
	}
	if len(risks) > shownRisks {
		risks = append(risks[:shownRisks], "… and others for another cause: -o wide shows the evidence of each")
	}
	return risks
}

// shownRisks is how many causes Risks names.
const shownRisks = 3

// leakedOf counts the entries. It returns nil if the pods could not be listed, or if no
// store could.
func leakedOf(r Report) *Leaked {
	listed := slices.ContainsFunc(r.Backends, func(b BackendReport) bool {
		return b.Status == ipam.StatusOK || b.Status == ipam.StatusPartial
	})
	if !listed || r.Blind() {
		return nil
	}
	found := Leaked{HeldBy: []ReasonCount{}, UndecidedBy: []ReasonCount{}}
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Fate().Leaked() {
			found.Allocations++
			if e.IP == "" {
				found.WithoutAddress++
			}
		}
	}
	for a := range Addresses(r.Entries) {
		found.Count(a)
	}
	for _, by := range [][]ReasonCount{found.HeldBy, found.UndecidedBy} {
		slices.SortFunc(by, func(a, b ReasonCount) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
		})
	}
	return &found
}

// Blind reports whether the run could not list the pods. Then it holds every allocation, and the
// verdicts mean nothing.
func (r Report) Blind() bool {
	return slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Reason == judge.NoCensus })
}

// Count counts an address. HeldBy and UndecidedBy are unsorted then.
func (l *Leaked) Count(a *Address) {
	switch a.Fate.Status() {
	case Undecided:
		l.Undecided++
		l.UndecidedBy = countReason(l.UndecidedBy, a.Reason)
		return
	case Released:
		l.Released++
	case Due:
		l.Due++
	case Waiting:
		l.Waiting++
	case Held:
		l.Held++
		l.HeldBy = countReason(l.HeldBy, a.Reason)
	default:
		return
	}
	l.Total++
}

// countReason counts one more address with a reason.
func countReason(counts []ReasonCount, reason judge.Reason) []ReasonCount {
	i := slices.IndexFunc(counts, func(c ReasonCount) bool { return c.Reason == reason })
	if i < 0 {
		i, counts = len(counts), append(counts, ReasonCount{Reason: reason})
	}
	counts[i].Count++
	return counts
}

// NoIPAM says that no store is installed.
const NoIPAM = "no IPAM that ip-reaper knows is installed here"

// BottomLine says in one sentence how much is leaked, what becomes of it, and of how much that is
// not known. It names the stores that could not be listed, because their leaks are not counted.
func (r Report) BottomLine() string {
	switch {
	case r.Leaked == nil && r.Blind():
		return "leak count unknown: pods unknown"
	case r.Leaked == nil && len(r.Backends) > 0 && !slices.ContainsFunc(r.Backends, func(b BackendReport) bool { return !notInstalled(b.Status, b.Message) }):
		return NoIPAM
	case r.Leaked == nil:
		return "leak count unknown: no store was listed"
	}
	l, only := *r.Leaked, ""
	if !r.Run.Selection.Everything() {
		only = " of " + r.Run.Selection.String()
		if r.Summary.Entries == 0 {
			return "no listed allocation matches " + r.Run.Selection.String() + r.alsoUnknown()
		}
	}
	due, refused := " due now", len(r.Result.Refused) > 0
	var parts []string
	if !r.Run.DryRun || l.Released > 0 {
		parts, due = append(parts, printable.Thousands(l.Released)+" released"), " still due"
	}
	if refused {
		due += " but refused"
	}
	waiting, held := printable.Thousands(l.Waiting)+" waiting", printable.Thousands(l.Held)+" held"
	if len(l.HeldBy) > 0 {
		held += " (" + reasons(l.HeldBy) + ")"
	}
	untimed := l.Waiting > 0 && r.Run.untimed()
	if l.Due > 0 || !untimed {
		parts = append(parts, printable.Thousands(l.Due)+due)
	}
	if untimed {
		waiting, held = held, waiting+", not timed yet: start the clock with --remember"
	}
	line := printable.Counted(l.Total, "leaked address") + only + ": " + strings.Join(append(parts, waiting, held), ", ")
	line += l.Unsure()
	if l.WithoutAddress > 0 {
		line += "; and " + printable.Counted(l.WithoutAddress, "leaked allocation") + " without an address"
	}
	return line + r.alsoUnknown()
}

// Unsure says of how many addresses it is not known whether they leaked, for the end of a sentence.
func (l Leaked) Unsure() (text string) {
	var others []ReasonCount
	for _, c := range l.UndecidedBy {
		if c.Reason == judge.TooYoung {
			l.Undecided -= c.Count
			text = "; " + printable.Thousands(c.Count) + " waiting, too young to tell"
		} else {
			others = append(others, c)
		}
	}
	if l.Undecided > 0 {
		text += "; " + printable.Thousands(l.Undecided) + " undecided (" + reasons(others) + ")"
	}
	return text
}

// reasons lists reasons with their counts.
func reasons(counts []ReasonCount) string {
	parts := make([]string, len(counts))
	for i, c := range counts {
		parts[i] = printable.Thousands(c.Count) + " " + c.Reason.Words()
	}
	return strings.Join(parts, ", ")
}

// alsoUnknown names the stores and networks that were not listed, for the end of the bottom line.
func (r Report) alsoUnknown() string {
	var names []string
	for _, b := range r.Backends {
		if b.Status == ipam.StatusFailed {
			names = append(names, b.Name)
		}
		names = append(names, b.NotListed...)
	}
	if len(names) == 0 {
		return ""
	}
	return "; unknown in " + printable.Some(names)
}
