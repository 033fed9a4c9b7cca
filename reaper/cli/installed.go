package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A choice is the policy that a command uses.
type choice struct {
	policy    policy.Policy
	installed string // the ConfigMap that it is from, as namespace/name; empty if it is from a file, or the default
	caveat    string // why it is the default instead of the installed one
	text      []byte // of the installed one, if that was read; nil if there is none
	missing   bool   // the command writes, and none is installed in the state namespace
}

// choosePolicy chooses the policy of a command outside a cluster: that of the file, or else the
// installed one. If none is installed, or it cannot be read, a dry run uses the default.
//
// What writes goes by the installed policy, also a dry run that remembers: with weaker limits, it
// could believe a list of pods that the CronJob then believes too. The file must then say the same,
// unless none is installed, or the text that is installed is no YAML: a policy with any other mistake
// may be valid for another version of the program.
//
// The dryRun of a policy is for the CronJob: a look from a workstation must not release because the
// CronJob does.
func choosePolicy(ctx context.Context, w ioStreams, core corev1.ConfigMapsGetter, namespace string, o connectOptions) (choice, error) {
	name := namespace + "/" + state.PolicyName
	text, err := state.InstalledPolicy(ctx, core, namespace)
	chosen := choice{policy: o.policy, text: text, missing: text == nil && o.writes}
	switch {
	case ctx.Err() != nil:
		return chosen, ctx.Err()
	case err != nil && isUsage(err):
		return chosen, err
	case err != nil && o.writes:
		return chosen, ipam.BadInput(fmt.Errorf("nothing is written: the installed policy could not be read: %w", err),
			fmt.Sprintf("get the right to get ConfigMap %s in namespace %s", state.PolicyName, namespace))
	case err != nil:
		chosen.caveat = "the installed policy could not be read, so the built-in defaults apply: " + printable.Error(err)
		return chosen, nil
	case text == nil && o.policyFile == "":
		chosen.caveat = fmt.Sprintf("no policy is installed, so the built-in defaults apply: namespace %s has no ConfigMap %s", namespace, state.PolicyName)
		return chosen, nil
	case text == nil:
		return chosen, nil
	}
	installed, err := policy.Load(text, plugin.Known(w.backends))
	installed.DryRun = o.policy.DryRun
	var invalid *policy.Error
	switch {
	case o.policyFile != "" && errors.As(err, &invalid) && invalid.NotYAML:
	case err != nil:
		return chosen, ipam.BadInput(fmt.Errorf("policy ConfigMap %s: %w", name, err),
			"correct it, or use the version of ip-reaper that it is for; a dry run takes another one with --policy FILE")
	case o.policyFile == "":
		chosen.policy, chosen.installed = installed, name
	case !reflect.DeepEqual(installed, o.policy):
		return chosen, ipam.BadInput(fmt.Errorf("policy %s differs from the installed policy (ConfigMap %s), which decides what is released", o.policyFile, name),
			"leave out --dry-run=false to see what the file would release; to release by it, install it")
	}
	return chosen, nil
}

// choosesPolicy reports whether the installed policy matters to a command outside a cluster. It does
// not if the command judges nothing, or is a dry run by a file.
func (o connectOptions) choosesPolicy() bool {
	return !o.stateOnly && (o.policyFile == "" || o.writes)
}

// elsewhere returns an error for a command that writes and finds no installed policy, if ip-reaper
// has its state in another namespace, as the warnings say, or may have: the policy may be there.
func (c choice) elsewhere(warnings []string, unread error) error {
	if !c.missing || len(warnings) == 0 && unread == nil {
		return nil
	}
	why := fmt.Errorf("no policy is installed here, and one may be in another namespace: %s", strings.Join(warnings, "; "))
	if len(warnings) == 0 {
		why = fmt.Errorf("no policy is installed here, and it is unknown whether ip-reaper is in another namespace: %w", unread)
	}
	return ipam.BadInput(why, "name that namespace with --state-namespace")
}

// unchanged returns an error if the installed policy is not the one that was chosen any more.
func (c choice) unchanged(ctx context.Context, core corev1.ConfigMapsGetter, namespace string) error {
	text, err := state.InstalledPolicy(ctx, core, namespace)
	if err != nil {
		return fmt.Errorf("nothing is released: the installed policy could not be read again: %w", err)
	}
	if !bytes.Equal(text, c.text) {
		return errors.New("nothing is released: the installed policy has changed since the run read it")
	}
	return nil
}

// stateTimeout limits the look at the state namespace: it is advice, and the run reports a
// server that does not answer.
const stateTimeout = 5 * time.Second

// checkState returns an error if the state namespace does not exist and the command must have it:
// it writes, or it was given the name. Otherwise it returns caveats for the report: there is no
// such namespace, or ledgers and locks exist elsewhere. unread says why it is not known whether
// they do.
func checkState(ctx context.Context, c clients, namespace string, must bool, logger *slog.Logger) (caveats []string, unread, err error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	var missing error
	var look sync.WaitGroup
	look.Go(func() { missing = state.CheckNamespace(ctx, c.core, namespace) })
	others, unread := state.OtherStates(ctx, c.raw, namespace)
	look.Wait()
	if unread != nil {
		logger.Debug("cannot tell whether other namespaces have a state", "err", unread)
	}
	var input *ipam.InputError
	hint := ""
	if errors.As(missing, &input) {
		hint = input.Hint
		if len(others) > 0 {
			hint = "ip-reaper has a ledger or a lock in namespace " + printable.Some(others) + ": name it with --state-namespace"
		}
	}
	switch {
	case input == nil && len(others) > 0:
		return []string{fmt.Sprintf("ip-reaper also has a ledger or a lock in namespace %s, and this command uses %s: "+
			"name the right one with --state-namespace, and delete the others", printable.Some(others), namespace)}, unread, nil
	case input == nil:
		return nil, unread, nil
	case must:
		return nil, unread, ipam.BadInput(input.Err, hint)
	}
	return []string{fmt.Sprintf("%v, so no memory of earlier runs was read, and nothing can be released: %s", input, hint)}, unread, nil
}

// rights returns a function that asks, before the first write of a round, whether the account
// has the rights to release. If there is no answer, nothing is denied: each write then shows
// whether it is allowed. Outside a cluster, everything is denied if the installed policy has changed.
//
// The rights to save the ledger and to take the lock are not asked for, because a run releases
// without them, and warns once about each.
func rights(w ioStreams, at place, c clients, opened []ipam.Backend, namespace string, chosen choice, logger *slog.Logger) func(context.Context, []string) reaper.Denied {
	rules := plugin.Needs(w.backends, opened, chosen.policy, plugin.Release)
	common := [][]state.Need{
		{{Verb: "get", Resource: "pods"}},                                // the second look
		{{Verb: "create", Resource: "configmaps", Namespace: namespace}}, // the journal
	}
	return func(ctx context.Context, backends []string) reaper.Denied {
		if at.context != "" {
			if err := chosen.unchanged(ctx, c.core, namespace); err != nil {
				return reaper.Denied{All: err}
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
func (at place) forbidden(released string, needs [][]state.Need, missing []state.Need) error {
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
		who, grants = strings.TrimSpace("your user "+at.user), "ask a cluster administrator for this, or release by a Job in the cluster"
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
var denial = regexp.MustCompile(`User "([^"]*)" cannot (\w+) resource "`)

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
		return "ask a cluster administrator for this right of " + user + "; the ClusterRoles ip-reaper and ip-reaper-... of an installation have all that are needed"
	case strings.HasSuffix(user, "-restore"):
		return restoreGrants
	case verb == "get" || verb == "list":
		return planGrants
	default:
		return releaseGrants
	}
}
