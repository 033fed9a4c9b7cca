package reaper

import (
	"context"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// warnOfMisspelt warns of the names in the policy that match nothing and are nearly one that
// exists: a misspelt protection protects nothing. A namespace that the cluster has is no mistake,
// even if nothing is in it.
func (r *run) warnOfMisspelt(ctx context.Context, s stock) {
	exact := slices.DeleteFunc(r.Policy.Patterns(), func(p policy.Pattern) bool { return !p.Exact() })
	for _, u := range judge.UnmatchedOf(exact, s.inventory, s.census) {
		if u.Meant == "" || u.Of == policy.NamespaceNames && r.namespace(ctx, u.Text) == census.Present {
			continue
		}
		r.warn(u.String())
	}
}

// Unmatched lists the stores and the pods, and returns the patterns of the policy that match
// nothing there. It decides nothing, and writes nothing. With a *PartialError, something could not
// be listed that they may match; with any other error, there is no answer.
func Unmatched(ctx context.Context, o Options) ([]judge.Unmatched, error) {
	r := newRun(o, true)
	inv := r.list(ctx)
	living, err := census.Take(ctx, r.Cluster, census.Scope{})
	if err != nil {
		return nil, err
	}
	return judge.UnmatchedOf(r.Policy.Patterns(), inv, living), r.failed()
}
