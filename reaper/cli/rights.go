package cli

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// rights returns what asks, before the first write of a run, whether the account has the
// rights to release. A question that is not answered is no obstacle: then each write shows
// whether it is allowed.
//
// The rights to save the ledger, to take the lock and to write events are not asked for,
// because a run releases without them, and warns once of each.
func rights(w ioStreams, c clients, opened []ipam.Backend, namespace string, p policy.Policy, logger *slog.Logger) func(context.Context, []string) reaper.Denied {
	rules := plugin.Needs(w.backends, opened, p, plugin.Release)
	return func(ctx context.Context, backends []string) reaper.Denied {
		common := []state.Need{
			{Verb: "get", Resource: "pods"},                                // the second look
			{Verb: "create", Resource: "configmaps", Namespace: namespace}, // the journal
		}
		needs := slices.Clone(common)
		of := make(map[string][][]state.Need)
		for _, name := range backends {
			of[name] = needsOf(rules[name])
			needs = append(needs, slices.Concat(of[name]...)...)
		}
		missing, err := state.Missing(ctx, c.raw, needs)
		if err != nil {
			logger.Debug("the rights of the account are not known", "err", err)
			return reaper.Denied{}
		}
		lacks := func(n state.Need) bool { return slices.Contains(missing, n) }
		denied := reaper.Denied{Backends: make(map[string]error)}
		if lacking := slices.DeleteFunc(common, func(n state.Need) bool { return !lacks(n) }); len(lacking) > 0 {
			denied.All = forbidden("nothing", lacking)
		}
		for _, name := range backends {
			var lacking []state.Need
			for _, alternatives := range of[name] {
				if !slices.ContainsFunc(alternatives, func(n state.Need) bool { return !lacks(n) }) {
					lacking = append(lacking, alternatives[0])
				}
			}
			if len(lacking) > 0 {
				denied.Backends[name] = forbidden("nothing of "+name, lacking)
			}
		}
		return denied
	}
}

// needsOf returns the needs of rules. Each element has the alternatives of one need: the
// verb in one API group or in another.
func needsOf(rules []rbacv1.PolicyRule) [][]state.Need {
	var needs [][]state.Need
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					var alternatives []state.Need
					for _, group := range rule.APIGroups {
						alternatives = append(alternatives, state.Need{Verb: verb, Group: group, Resource: resource, Name: name})
					}
					needs = append(needs, alternatives)
				}
			}
		}
	}
	return needs
}

// forbidden returns the error for rights that are missing.
func forbidden(released string, lacking []state.Need) error {
	var verbs []string
	for _, need := range lacking {
		verbs = append(verbs, need.String())
	}
	return errors.New("forbidden: " + released + " is released, because the account may not " + strings.Join(verbs, ", ") +
		": the component release of the manifests, or mode: release of the chart, grants this")
}
