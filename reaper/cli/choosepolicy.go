package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
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
	version   string // of its ConfigMap
	missing   bool   // none is installed in the state namespace
}

// choosePolicy chooses between the policy of the file and the installed one, which counts without a
// file. If none is installed, or it cannot be read, a dry run uses the default.
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
	text, version, err := state.InstalledPolicy(ctx, core, namespace)
	chosen := choice{policy: o.policy, text: text, version: version, missing: err == nil && text == nil}
	switch {
	case ctx.Err() != nil:
		return chosen, ctx.Err()
	case err != nil && isUsage(err):
		return chosen, err
	case err != nil && o.writes:
		return chosen, ipam.BadInput(fmt.Errorf("nothing is written: the installed policy could not be read: %w", err),
			fmt.Sprintf("the Role ip-reaper-operator may get configmaps %s in namespace %s", state.PolicyName, namespace))
	case err != nil:
		chosen.caveat = "the installed policy could not be read, so the built-in defaults apply: " + printable.Error(err)
		return chosen, nil
	case text == nil && o.policyFile == "":
		chosen.caveat = "no policy is installed in namespace " + namespace + ": built-in defaults apply"
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

// readInstalled returns the installed policy.
func readInstalled(ctx context.Context, w ioStreams, core corev1.ConfigMapsGetter, namespace string) (policy.Policy, error) {
	text, _, err := state.InstalledPolicy(ctx, core, namespace)
	if err != nil {
		return policy.Policy{}, err
	}
	return installedOf(w, namespace, text)
}

// installedOf returns the installed policy of its text, which is nil if there is none.
func installedOf(w ioStreams, namespace string, text []byte) (policy.Policy, error) {
	if text == nil {
		return policy.Policy{}, fmt.Errorf("ConfigMap %s/%s is %w", namespace, state.PolicyName, ipam.ErrNotInstalled)
	}
	return policy.Load(text, plugin.Known(w.backends))
}

// mayBeElsewhere returns the error of a command that writes and finds no installed policy, if ip-reaper
// has its state in another namespace, as the warnings say, or may have: the policy may be there.
func (c choice) mayBeElsewhere(warnings []string, unread error) error {
	if !c.missing || len(warnings) == 0 && unread == nil {
		return nil
	}
	why := fmt.Errorf("no policy is installed here, and one may be in another namespace: %s", strings.Join(warnings, "; "))
	if len(warnings) == 0 {
		why = fmt.Errorf("no policy is installed here, and it is unknown whether ip-reaper is in another namespace: %w", unread)
	}
	return ipam.BadInput(why, "name that namespace with --state-namespace")
}

// unchanged returns an error if the installed policy is not the one that was chosen any more. It reads
// the text only if the version differs, which labels change, too.
func (c choice) unchanged(ctx context.Context, core corev1.CoreV1Interface, namespace string) error {
	version, err := state.PolicyVersion(ctx, core, namespace)
	if err == nil && version == c.version {
		return nil
	}
	var text []byte
	if err == nil {
		text, _, err = state.InstalledPolicy(ctx, core, namespace)
		err = kube.Answered(err)
	}
	if err != nil {
		return fmt.Errorf("the installed policy could not be read again: %w", err)
	}
	if !bytes.Equal(text, c.text) {
		return errors.New("the installed policy has changed since the run read it")
	}
	return nil
}

// loadPolicy reads a policy file. Without a file, it returns the default policy.
func loadPolicy(ctx context.Context, w ioStreams, file string) (policy.Policy, error) {
	if file == "" {
		return policy.Default(), nil
	}
	p, _, err := readPolicy(ctx, w, file)
	return p, err
}

// readPolicy reads a policy file, but at most one byte beyond policy.MaxSize, and returns its text too.
func readPolicy(ctx context.Context, w ioStreams, file string) (p policy.Policy, data []byte, err error) {
	text, name, err := dump.Open(ctx, w.stdin, file)
	if err == nil {
		defer text.Close()
		data, err = io.ReadAll(io.LimitReader(text, policy.MaxSize+1))
	}
	if err != nil {
		return p, nil, ipam.BadInput(fmt.Errorf("policy: %w", err), "write one: "+w.name()+" policy example > policy.yaml")
	}
	if p, err = policy.Load(data, plugin.Known(w.backends)); err != nil {
		err = fmt.Errorf("policy %s: %w", name, err)
	}
	return p, data, err
}
