package reaper

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Inspect is a dry run on files. Backends and Cluster read files, and Inspect contacts
// no API server and no store. It needs no ledger.Store. If Cluster is nil, every allocation
// is held.
//
// Files lack two of the four things that a release needs, and the report warns of that.
// They do not say that the pods were listed after the allocations. Without Options.Remembered,
// every grace period counts as over. If the plan is over a limit, the report shows it
// as refused, and warns.
//
// The error is an *InputError if the selection names something that does not exist, and
// a *PartialError if some pool could not be read.
func Inspect(ctx context.Context, o Options) (report.Report, error) {
	r := newRun(o, true)
	if o.Cluster != nil { // the files are all there is
		r.HasNamespace = func(context.Context, string) census.Presence { return census.Absent }
	}
	n := &r.round
	stock, listErr := r.takeStock(ctx)
	n.stock = stock
	n.now = o.Now().UTC()
	if listErr != nil {
		n.verdicts = r.judge(n.now, r.Policy, n.stock, ledger.Ledger{})
		n.selected = n.selection.Of(n.verdicts.Decisions)
		return r.report(), listErr
	}
	// Without a ledger, every grace period is over. The second time, there is one that knows nodes, as in a run.
	for i := 0; i < 2 && !r.lasts; i++ {
		verdicts := r.judge(n.now, r.Policy, n.stock, n.ledger)
		n.ledger = judge.NextLedger(n.ledger, verdicts, census.Census{}, n.inventory, time.Time{}).LongAgo()
	}
	n.verdicts = r.judge(n.now, r.Policy, n.stock, n.ledger)
	r.warnOfDump(n.verdicts)
	n.selected = n.selection.Of(n.verdicts.Decisions)
	if err := r.resolveNames(ctx, *n); err != nil {
		return r.report(), err
	}
	n.plan = judge.PlanOf(n.verdicts, n.inventory, nil).Select(n.selected)
	n.attempts = attemptsOf(n.plan)
	r.warnOf(ctx, n)
	if refusals := n.plan.Check(o.Policy.Limits, n.census); len(refusals) > 0 {
		n.refuse(refusals)
		for _, refusal := range refusals {
			r.warn("a run would refuse this plan: " + refusal.Message)
		}
	}
	planAll(n.attempts, report.Planned)
	r.findEndpoints(ctx)
	r.warnOfMissingNamespaces(*n)
	r.tell(n.layout.Findings(n.inventory, n.census))
	return r.report(), r.failed()
}

// warnOfDump says what a dump of the cluster lacks.
func (r *run) warnOfDump(v judge.Verdicts) {
	if r.Cluster == nil {
		r.warn("no pods were given, so every allocation is held")
		return
	}
	if !r.lasts {
		r.caveat("files have no history: this assumes that every grace period is over, and that the pods were listed last")
	}
	held := make(map[string]int)
	for _, d := range v.Decisions {
		if d.Reason == judge.Protected && strings.HasPrefix(d.Note, ipam.LackSays) {
			held[d.Note]++
		}
	}
	for _, lack := range slices.Sorted(maps.Keys(held)) {
		r.caveat(fmt.Sprintf("%s: held for that: %d", lack, held[lack]))
	}
}

// warnOfMissingNamespaces names the namespaces of orphans in which the census has no pods
// at all. A dump of one namespace looks like that.
func (r *run) warnOfMissingNamespaces(n round) {
	populated := make(map[string]bool)
	for _, pod := range n.census.Pods() {
		populated[pod.Ref.Namespace] = true
	}
	var missing []string
	for _, o := range n.plan.Orphans() {
		namespace := o.Allocation().Owner.Pod.Namespace
		if namespace != "" && !populated[namespace] {
			missing = append(missing, namespace)
		}
	}
	if len(missing) == 0 || n.census.Size() == 0 || r.WholeDump {
		return
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	r.caveat("the dump has no pods of the namespaces " + printable.Some(missing) + ": was it dumped with -A?")
}
