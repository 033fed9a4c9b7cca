package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// rights returns a function that asks, before the first write of a round, whether the account
// has the rights to release. If there is no answer, nothing is denied: each write then shows
// whether it is allowed. Everything is denied if the policy is not the same any more; same may be nil.
//
// The rights to save the ledger and to take the lock are not asked for, because a run releases
// without them, and warns once about each.
func rights(w ioStreams, at apiServer, c clients, opened []ipam.Backend, namespace string, p policy.Policy, same func(context.Context) error, logger *slog.Logger) func(context.Context, []string) reaper.Denied {
	rules := plugin.Needs(w.backends, opened, p, plugin.Release)
	common := [][]state.Need{
		{{Verb: "get", Resource: "pods"}},                                // the second look
		{{Verb: "create", Resource: "configmaps", Namespace: namespace}}, // the journal
	}
	return func(ctx context.Context, backends []string) reaper.Denied {
		if same != nil {
			if err := same(ctx); err != nil {
				return reaper.Denied{All: fmt.Errorf("nothing is released: %w", err)}
			}
		}
		needs := slices.Concat(common...)
		for _, name := range backends {
			needs = append(needs, slices.Concat(needsOf(rules[name])...)...)
		}
		missing, err := state.Missing(ctx, c.raw, needs)
		if err != nil {
			logger.Debug("cannot tell which rights the account has", "err", err)
			return reaper.Denied{}
		}
		denied := reaper.Denied{All: at.forbidden("nothing", common, missing), Backends: make(map[string]error)}
		for _, name := range backends {
			if err := at.forbidden("nothing of "+name, needsOf(rules[name]), missing); err != nil {
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

// forbidden returns the error for needs whose alternatives are all missing; nil if there is none.
func (at apiServer) forbidden(released string, needs [][]state.Need, missing []state.Need) error {
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
	who, grants := "the account", releaseGrants
	if at.context != "" {
		who, grants = strings.TrimSpace("your user "+at.user), "the ClusterRole and, in the state namespace, the Role ip-reaper-operator grant this"
	}
	return fmt.Errorf("forbidden: %s is released, because %s may not %s: %s", released, who, strings.Join(verbs, ", "), grants)
}

// What grants the account of an installation its rights.
const (
	planGrants    = "deploy/kustomize/components/plan grants this, and so does mode: plan of the Helm chart"
	releaseGrants = "deploy/kustomize/components/release grants this, and so does mode: release of the Helm chart"
	restoreGrants = "deploy/kustomize/components/restore grants this, and so does restore.enabled of the Helm chart"
)

// denial is how the authorizers of Kubernetes say that a right is missing.
var denial = regexp.MustCompile(`User "([^"]*)" cannot (\w+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)

// missingRight returns what to do about a right that the API server said is missing; nothing for
// any other error.
func missingRight(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	found := denial.FindStringSubmatch(status.Status().Message)
	if found == nil {
		return ""
	}
	switch user, verb := found[1], found[2]; {
	case !strings.HasPrefix(user, "system:serviceaccount:"):
		right := state.Need{Verb: verb, Resource: found[3], Group: found[4], Namespace: found[5]}
		says := fmt.Sprintf("ask a cluster administrator to let %s %s", user, right)
		if !strings.Contains(status.Status().Message, state.PolicyName) { // no role has that
			says += "; ip-reaper-view is the role for looking, ip-reaper-operator that for releasing"
		}
		return says
	case strings.HasSuffix(user, "-restore"):
		return restoreGrants
	case verb == "get" || verb == "list":
		return planGrants
	default:
		return releaseGrants
	}
}

// elsewhereFirst returns an error, whose hint says where else ip-reaper has its state before it asks for
// a right that is missing here.
func elsewhereFirst(err error, warnings []string) error {
	if hint := missingRight(err); hint != "" && len(warnings) > 0 {
		return ipam.BadInput(err, strings.Join(append(slices.Clone(warnings), hint), "; "))
	}
	return err
}
