package reaper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	unknown    []string        // the names of pools in it that stand for nothing
	census     census.Census
	ledger     ledger.Ledger // of earlier runs
	ledgerRead bool          // otherwise the stored ledger may be whole, and must not be replaced

	installed    policy.Policy // if Options.Installed is set
	notInstalled error
}

// takeStock lists the stores, and then at the same time their networks, the pods with what else the
// policy needs, the ledger and the policy to compare with. A pod that was there when its allocation
// was listed is missing from the census only if it is gone. What a restore put back into a store is in
// the ledger before that.
func (r *run) takeStock(ctx context.Context) (stock, error) {
	s := stock{inventory: r.list(ctx), selection: r.Selection}
	unread := dropUnread(&s.inventory)
	var warnings []string
	var censusErr, ledgerErr error
	var lists sync.WaitGroup
	lists.Go(func() { s.layout, warnings = survey(ctx, r.Backends, s.inventory) })
	if r.Files != nil {
		s.ledger = r.Files.Remembered
	} else {
		lists.Go(func() { s.ledger, ledgerErr = r.Ledgers.Load(ctx) })
	}
	if r.Installed != nil {
		lists.Go(func() { s.installed, s.notInstalled = r.Installed(ctx) })
	}
	if r.Cluster != nil {
		sets := r.Policy.Protection.StatefulSets != policy.Ignore || r.Installed != nil // which may need them
		s.census, censusErr = census.Take(ctx, r.Cluster, census.Scope{StatefulSets: sets, Nodes: true})
	}
	lists.Wait()
	r.warn(warnings...)
	s.selection.Found, s.unknown = poolsOf(s.selection.Pools, s.inventory, s.layout)
	if censusErr != nil {
		s.ledger = ledger.Ledger{}
		return s, fmt.Errorf("census: %w", censusErr)
	}
	if r.Cluster != nil {
		r.progress("found %s", s.census.Found())
		s.census = r.tellEndpoints(ctx, s.inventory, s.census)
		r.warn(judge.ExcessWarnings(r.Policy, s.census)...)
		r.warn(judge.FenceWarnings(s.census)...)
		if none := s.census.Unclaimed(); none != "" {
			r.warn(none)
		}
	}
	s.holdForUnread(unread)
	r.checkLedger(&s, ledgerErr)
	return s, nil
}

// list lists the stores that the policy does not disable.
func (r *run) list(ctx context.Context) ipam.Inventory {
	var enabled []ipam.Backend
	var protectors []ipam.Protector
	var disabled []ipam.Listing
	isOff := func(name string, protects bool) bool {
		off := r.Policy.Backends[name].Enabled == policy.Off
		if off {
			disabled = append(disabled, ipam.Listing{Backend: name, Status: ipam.StatusSkipped, Message: "disabled by the policy", Protects: protects})
		}
		return off
	}
	for _, b := range r.Backends {
		if !isOff(b.Name(), false) {
			enabled = append(enabled, b)
		}
	}
	for _, p := range r.Protectors {
		if !isOff(p.Name(), true) {
			protectors = append(protectors, p)
		}
	}
	inv := ipam.TakeInventory(ctx, enabled, func(name string) bool {
		return r.Policy.Backends[name].Enabled == policy.On
	}, protectors...)
	if r.Files != nil {
		inv.Listings = readFrom(inv.Listings)
	}
	for _, l := range inv.Listings {
		if unreadIn(l) != nil {
			continue
		}
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
	return inv
}

// checkLedger says what is wrong with the ledger that was loaded, and adds what earlier rounds of a
// dry run found.
func (r *run) checkLedger(s *stock, err error) {
	switch {
	case errors.Is(err, ledger.ErrDamaged):
		r.warn(err.Error() + "; every allocation counts as first seen now, and what the ledger knew of stores, nodes, hung pods and restored allocations is lost")
	case err != nil:
		r.failAndWarn(fmt.Errorf("load the ledger: %w", err))
		s.ledger = ledger.Ledger{}
	}
	s.ledgerRead = err == nil || errors.Is(err, ledger.ErrDamaged)
	if s.ledgerRead {
		s.ledger = s.ledger.Salted()
	}
	r.stored = s.ledger
	r.lasts = r.lasts || !s.ledger.Equal(ledger.Ledger{})
	if !r.remembers() {
		s.ledger = s.ledger.Merge(r.earlier.memory)
	}
}

// surveyTimeout is how long a survey may take. A run goes on without it.
const surveyTimeout = 20 * time.Second

// survey returns the pools of an inventory and their networks, which it adds to the listings. It also
// returns warnings about what it does not know.
func survey(ctx context.Context, backends []ipam.Backend, inv ipam.Inventory) (layout report.Layout, warnings []string) {
	errs := make([]error, len(inv.Listings))
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	var surveys sync.WaitGroup
	for i := range inv.Listings {
		l := &inv.Listings[i]
		of := slices.IndexFunc(backends, func(b ipam.Backend) bool { return b.Name() == l.Backend })
		if of < 0 || l.Status == ipam.StatusFailed || l.Status == ipam.StatusSkipped {
			continue
		}
		if surveyor, ok := backends[of].(ipam.Surveyor); ok {
			surveys.Go(func() { l.Networks, errs[i] = surveyor.Survey(ctx, l.Pools) })
		}
	}
	surveys.Wait()
	layout = report.NewLayout(inv)
	for i, l := range inv.Listings {
		inv.Listings[i].Surveyed = errs[i] == nil
		if errs[i] != nil {
			warnings = append(warnings, l.Backend+": the usage of some networks is unknown: "+printable.Error(errs[i]))
		}
		if left := layout.AddNetworks(l, l.Networks); left > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %d networks that have no pool are not in the report, beside %d that are", l.Backend, left, report.MaxEmptyNetworks))
		}
	}
	return layout, warnings
}
