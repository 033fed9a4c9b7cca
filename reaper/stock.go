package reaper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A stock is what a round knows before it decides, and how completely.
type stock struct {
	inventory  ipam.Inventory
	layout     report.Layout   // of the inventory
	selection  judge.Selection // with the pools that it means
	census     census.Census
	ledger     ledger.Ledger // of earlier runs
	ledgerRead bool          // otherwise the stored ledger may be whole, and must not be replaced
}

// list lists the stores that the policy does not disable.
func (r *run) list(ctx context.Context) stock {
	var enabled []ipam.Backend
	var disabled []ipam.Listing
	for _, b := range r.Backends {
		if r.Policy.Backends[b.Name()].Enabled != policy.Off {
			enabled = append(enabled, b)
			continue
		}
		disabled = append(disabled, ipam.Listing{
			Backend: b.Name(), Status: ipam.StatusSkipped, Message: "disabled by the policy",
			Protects: slices.Contains(r.Protectors, b.Name()),
		})
	}
	inv := ipam.TakeInventory(ctx, enabled, func(name string) bool {
		return r.Policy.Backends[name].Enabled == policy.On
	}, r.Protectors...)
	for _, l := range inv.Listings {
		for _, err := range l.Errors {
			r.fail(fmt.Errorf("%s: %w", l.Backend, err))
		}
		r.warnOfUndecoded(l)
	}
	inv.Listings = append(inv.Listings, disabled...)
	for _, name := range slices.Sorted(maps.Keys(r.Elsewhere)) {
		inv.Listings = append(inv.Listings, ipam.Listing{Backend: name, Status: ipam.StatusSkipped, Message: r.Elsewhere[name]})
	}
	r.progress("listed %s", inv.Stores())
	s := stock{inventory: inv, selection: r.Selection}
	var warnings []string
	s.layout, warnings = survey(ctx, r.Backends, inv)
	r.warn(warnings...)
	s.selection.Found = poolsOf(s.selection.Pools, inv, s.layout)
	return s
}

// warnOfUndecoded names the first objects that a listing could not decode, and counts the
// rest. Two stores may have the same object.
func (r *run) warnOfUndecoded(l ipam.Listing) {
	named := min(len(l.Undecoded), printable.MaxNamed)
	for _, err := range l.Undecoded[:named] {
		r.warn(err.Error())
	}
	if more := len(l.Undecoded) - named; more > 0 {
		r.warn(fmt.Sprintf("%s: %s cannot be decoded: -o json lists them", l.Backend, printable.Counted(more, "more object")))
	}
}

// takeCensus lists the pods, and what else the policy needs.
func (r *run) takeCensus(ctx context.Context, s *stock) (err error) {
	if s.census, err = census.Take(ctx, r.Cluster, scopeOf(r.Policy)); err != nil {
		return err
	}
	r.progress("found %s", s.census.Found())
	r.warn(judge.ExcessWarnings(r.Policy, s.census)...)
	r.warn(judge.FenceWarnings(s.census)...)
	return nil
}

// scopeOf returns the lists that the policy needs besides those of the pods and the virtual
// machines. Nodes show which pods moved, and which may hide an address.
func scopeOf(p policy.Policy) census.Scope {
	return census.Scope{StatefulSets: p.Protection.StatefulSets != policy.Ignore, Nodes: true}
}

// loadLedger loads the ledger of earlier runs.
func (r *run) loadLedger(ctx context.Context, s *stock) {
	known, err := r.Ledgers.Load(ctx)
	switch {
	case errors.Is(err, ledger.ErrDamaged):
		r.warn(err.Error() + "; every allocation counts as first seen now, and what the ledger knew of stores, nodes, hung pods and restored allocations is lost")
	case err != nil:
		r.failAndWarn(fmt.Errorf("load the ledger: %w", err))
		known = ledger.Ledger{}
	}
	s.ledgerRead = err == nil || errors.Is(err, ledger.ErrDamaged)
	if s.ledgerRead {
		known = known.Salted()
	}
	r.stored = known
	r.lasts = r.lasts || !known.Equal(ledger.Ledger{})
	if !r.remembers() {
		known = known.Merge(r.past.memory)
	}
	s.ledger = known
}

// surveyTimeout is how long the survey of one backend may take. A run goes on without it.
const surveyTimeout = 20 * time.Second

// survey returns the pools of an inventory and their networks. It also returns warnings about what
// it does not know.
func survey(ctx context.Context, backends []ipam.Backend, inv ipam.Inventory) (layout report.Layout, warnings []string) {
	layout = report.NewLayout(inv)
	for _, l := range inv.Listings {
		i := slices.IndexFunc(backends, func(b ipam.Backend) bool { return b.Name() == l.Backend })
		if i < 0 || l.Status == ipam.StatusFailed || l.Status == ipam.StatusSkipped {
			continue
		}
		s, ok := backends[i].(ipam.Surveyor)
		if !ok {
			continue
		}
		timed, cancel := context.WithTimeout(ctx, surveyTimeout)
		networks, err := s.Survey(timed, l.Pools)
		cancel()
		if err != nil {
			warnings = append(warnings, l.Backend+": the usage of some networks is unknown: "+printable.Error(err))
		}
		if left := layout.AddNetworks(l, networks); left > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %d networks that have no pool are not in the report, beside %d that are", l.Backend, left, report.MaxEmptyNetworks))
		}
	}
	return layout, warnings
}
