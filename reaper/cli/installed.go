package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/policy"
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
	missing   bool   // none is installed in the state namespace
}

// choosePolicy chooses the policy of a command outside a cluster: the file, or else the one that is
// installed in the namespace. If none is installed, or it cannot be read, that is the default.
//
// The dryRun of a policy is for the CronJob: a look from a workstation must not release because the
// CronJob does. A release by a policy other than the installed one is refused unless it
// is overridden, even if it is only possible that one is installed. So is a dry run that remembers:
// with weaker limits, it could believe a list of pods that the CronJob then believes too.
func choosePolicy(ctx context.Context, w ioStreams, core corev1.ConfigMapsGetter, namespace string, o connectOptions) (choice, error) {
	given := choice{policy: o.policy}
	name := namespace + "/" + state.PolicyName
	installed, found, err := readInstalled(ctx, w, core, namespace)
	installed.DryRun = o.policy.DryRun
	switch {
	case ctx.Err() != nil:
		return given, ctx.Err()
	case o.policyFile != "" && (err != nil || found && !reflect.DeepEqual(installed, o.policy)):
		why, hint := fmt.Errorf("policy %s is not the installed one, ConfigMap %s", o.policyFile, name), "leave out --dry-run=false to see what the file would release, or --policy to release by the installed policy"
		if err != nil && !isUsage(err) {
			why, hint = fmt.Errorf("policy %s may not be the installed one, which could not be read: %w", o.policyFile, err), readHint
		}
		return given, ipam.BadInput(why, hint+"; to release by the file, type --"+overrideFlag+" too")
	case o.policyFile != "":
		given.missing = !found
		return given, nil
	case err != nil && isUsage(err):
		return given, ipam.BadInput(err, "correct the installed policy, or name another one with --policy FILE")
	case err != nil && o.lasting:
		return given, ipam.BadInput(fmt.Errorf("the installed policy could not be read, so nothing is written: %w", err),
			readHint+"; to take another policy, name it with --policy FILE and type --"+overrideFlag)
	case err != nil:
		given.caveat = "the installed policy could not be read, so this is by the built-in defaults: " + printable.Error(err)
		return given, nil
	case !found:
		given.missing = true
		given.caveat = fmt.Sprintf("no policy is installed, so this is by the built-in defaults: namespace %s has no ConfigMap %s", namespace, state.PolicyName)
		return given, nil
	}
	return choice{policy: installed, installed: name}, nil
}

// choosesPolicy reports whether the installed policy matters to a command outside a cluster. It does
// not if the command judges nothing, or has a file, unless a release by the file may be refused.
func (o connectOptions) choosesPolicy() bool {
	return !o.stateOnly && (o.policyFile == "" || o.lasting && !o.override)
}

// readInstalled reads the installed policy. A policy that is not valid is a mistake of the user.
func readInstalled(ctx context.Context, w ioStreams, core corev1.ConfigMapsGetter, namespace string) (p policy.Policy, found bool, err error) {
	text, err := state.InstalledPolicy(ctx, core, namespace)
	if err != nil || text == nil {
		return p, false, err
	}
	if p, err = policy.Load(text, plugin.Known(w.backends)); err != nil {
		return p, true, fmt.Errorf("policy ConfigMap %s/%s: %w", namespace, state.PolicyName, err)
	}
	return p, true, nil
}

// elsewhere returns an error for a release that finds no installed policy, if ip-reaper has its
// state in another namespace, as the warnings say, or may have: the policy may be there.
func (c choice) elsewhere(warnings []string, unread error, o connectOptions) error {
	if !c.missing || !o.lasting || len(warnings) == 0 && unread == nil {
		return nil
	}
	why := fmt.Errorf("no policy is installed here, and one may be in another namespace: %s", strings.Join(warnings, "; "))
	if len(warnings) == 0 {
		why = fmt.Errorf("no policy is installed here, and it is unknown whether ip-reaper is in another namespace: %w", unread)
	}
	return ipam.BadInput(why,
		"name that namespace with --state-namespace; to take another policy, name it with --policy FILE and type --"+overrideFlag)
}

// readHint says what to do if the installed policy could not be read.
const readHint = "get the right to read it"

// overrideFlag is the flag of a run that releases by a policy other than the installed one. It
// must be typed.
const overrideFlag = "unsafe-override-installed-policy"

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
	missing := state.CheckNamespace(ctx, c.core, namespace)
	others, unread := state.OtherStates(ctx, c.raw, namespace)
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
