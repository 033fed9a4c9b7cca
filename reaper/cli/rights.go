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
	common := [][]state.Need{
		{{Verb: "get", Resource: "pods"}},                                // the second look
		{{Verb: "create", Resource: "configmaps", Namespace: namespace}}, // the journal
	}
	return func(ctx context.Context, backends []string) reaper.Denied {
		needs := slices.Concat(common...)
		for _, name := range backends {
			needs = append(needs, slices.Concat(needsOf(rules[name])...)...)
		}
		missing, err := state.Missing(ctx, c.raw, needs)
		if err != nil {
			logger.Debug("the rights of the account are not known", "err", err)
			return reaper.Denied{}
		}
		denied := reaper.Denied{All: forbidden("nothing", common, missing), Backends: make(map[string]error)}
		for _, name := range backends {
			if err := forbidden("nothing of "+name, needsOf(rules[name]), missing); err != nil {
				denied.Backends[name] = err
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

// forbidden returns the error for needs of which all alternatives are missing; nil if there is none.
func forbidden(released string, needs [][]state.Need, missing []state.Need) error {
	var verbs []string
	for _, alternatives := range needs {
		allowed := func(n state.Need) bool { return !slices.Contains(missing, n) }
		if !slices.ContainsFunc(alternatives, allowed) {
			verbs = append(verbs, alternatives[0].String())
		}
	}
	if len(verbs) == 0 {
		return nil
	}
	return errors.New("forbidden: " + released + " is released, because the account may not " + strings.Join(verbs, ", ") +
		": the component release of the manifests, or mode: release of the chart, grants this")
}
