package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const policyExamples = `  # Write a policy, change it, and check it
  %[1]s policy example > policy.yaml
  %[1]s policy validate policy.yaml

  # Which of its names match nothing in this cluster? In CI, that is exit code 3
  %[1]s policy validate --context prod --strict policy.yaml

  # What would it change? Then install it
  %[1]s policy install --context prod policy.yaml
  %[1]s policy install --context prod policy.yaml --dry-run=false

  # A schema for editors
  %[1]s policy schema > policy.schema.json`

func newPolicy(w ioStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		Short:   "Print an example of a policy, check policies, and install one",
		Example: fmt.Sprintf(policyExamples, w.name()),
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	known := plugin.Known(w.backends)
	cmd.AddCommand(
		printer("example", "Print a policy with every field explained", func() ([]byte, error) { return policy.Example(known), nil }),
		printer("schema", "Print the JSON schema of policies, for editors", func() ([]byte, error) { return policy.Schema(known) }),
		newFiles(w, "validate FILE...", "Check policy files; with --context, against a cluster"),
		newFiles(w, "install FILE", "Show what a policy would change, and install it if told to"),
	)
	return cmd
}

// policyFlags are the flags of policy validate and policy install.
type policyFlags struct {
	commandFlags
	cluster  clusterFlags
	strict   bool
	installs bool
	dryRun   bool
}

// newFiles is a command that checks policy files.
func newFiles(w ioStreams, use, short string) *cobra.Command {
	f := &policyFlags{commandFlags: commandFlags{timeout: defaultTimeout, concurrency: defaultConcurrency, stateOnly: true}}
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  files,
		RunE:  func(cmd *cobra.Command, files []string) error { return validate(cmd.Context(), w, f, files) },
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.cluster.add(all)
	f.flags, f.target = all, &f.cluster
	names := append([]string{"context", "kubeconfig"}, clientFlags...)
	all.Lookup("context").Usage = "list the patterns that match nothing in the cluster of this `CONTEXT` of the kubeconfig"
	if f.installs = cmd.Name() == "install"; f.installs {
		names = append(names, "state-namespace") // validate has no use for the state
		all.Lookup("context").Usage = "compare the policy with that of the cluster of this `CONTEXT` of the kubeconfig"
		cmd.Flags().BoolVar(&f.dryRun, "dry-run", true, "only show what would change; --dry-run=false installs the policy")
	}
	for _, name := range names {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	cmd.Flags().BoolVar(&f.strict, "strict", false, "with --context, end with exit code 3 if a name matches nothing")
	return cmd
}

// printer is a command that prints a text.
func printer(name, short string, text func() ([]byte, error)) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := text()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		},
	}
}

// validate checks policies. The error has the mistakes of all of them. Without a context, it contacts
// nothing.
func validate(ctx context.Context, w ioStreams, f *policyFlags, files []string) error {
	named := f.cluster.client.CurrentContext != ""
	if !named && (f.cluster.kubeconfig != "" || f.flags.Changed("context") || f.strict || f.installs) {
		return ipam.BadInput(errors.New("no --context is named"), "name one to compare the policy with its cluster")
	}
	if err := f.cluster.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var errs []error
	for _, file := range files {
		errs = append(errs, f.validate(ctx, w, file, named))
	}
	if !named {
		fmt.Fprintln(w.stderr, "warning: names were not checked: add --context")
	}
	return errors.Join(errs...)
}

// validate checks a policy, and prints its name if it is valid, and warnings about it. It compares and
// installs it if that is the command.
func (f policyFlags) validate(ctx context.Context, w ioStreams, file string, cluster bool) error {
	p, text, err := readPolicy(ctx, w, file)
	if err != nil {
		return err
	}
	fmt.Fprintln(w.stdout, printable.Line(file)+" is valid")
	var conn connection
	var unmatched []string
	if cluster {
		f.policyFile = file
		if conn, err = f.connect(ctx, w, f.installs, p, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		defer conn.close()
		var found []judge.Unmatched
		found, err = reaper.Unmatched(ctx, conn.Options)
		for _, u := range found { // nothing is known of the stores on the nodes of the cluster
			onNodes := func(b plugin.Plugin) bool { return b.Scope == plugin.Node && u.Matches(b.Name) }
			if u.Of != policy.BackendNames || !slices.ContainsFunc(w.backends, onNodes) {
				unmatched = append(unmatched, u.String())
			}
		}
		if err == nil && len(found) == 0 {
			fmt.Fprintln(w.stdout, printable.Line(file)+": each name matches something in the cluster")
		}
	}
	for _, warning := range append(p.Warnings(), unmatched...) {
		fmt.Fprintf(w.stderr, "warning: policy %s: %s\n", printable.Line(file), printable.Line(warning))
	}
	if f.strict && len(unmatched) > 0 {
		err = errors.Join(err, report.Partial([]error{fmt.Errorf("policy %s: names that match nothing: %d", file, len(unmatched))}))
	}
	if !f.installs || f.strict && err != nil {
		return err
	}
	return conn.install(ctx, w, text, f.dryRun)
}

// install prints how the plan of a policy differs from that of the installed one, and installs the text
// unless that is a dry run. A partial or a refused plan is no reason not to.
func (c connection) install(ctx context.Context, w ioStreams, text []byte, dryRun bool) error {
	had, version, err := state.InstalledPolicy(ctx, c.core, c.StateNamespace)
	if err != nil {
		return err
	}
	if err := (choice{missing: version == ""}).mayBeElsewhere(c.warnings, nil); err != nil {
		return err
	}
	says := "ConfigMap " + c.StateNamespace + "/" + state.PolicyName
	if bytes.Equal(had, text) {
		_, err := fmt.Fprintln(w.stdout, "nothing changes: "+says+" has this policy")
		return err
	}
	o := c.Options
	was, unread := installedOf(w, c.StateNamespace, had)
	o.Policy.DryRun, o.Installed = new(true), func(context.Context) (policy.Policy, error) { return was, unread }
	found, err := reaper.Run(ctx, o)
	err = errors.Join(err, print.Write(w.stdout, print.Options{Format: "table", Quiet: true}, found))
	if by := found.Comparison; by != nil && by.Missing != "" {
		fmt.Fprintln(w.stdout, by)
	}
	if unread == nil && (*was.DryRun != *c.Policy.DryRun || !reflect.DeepEqual(was.Limits, c.Policy.Limits)) {
		fmt.Fprintln(w.stdout, "dryRun or limits differ, too: they decide whether a plan is carried out")
	}
	if !slices.Contains([]int{exitDone, exitPartial, exitLimit}, exitCode(ctx, err)) {
		return err
	}
	if dryRun {
		says = "nothing was written: --dry-run=false installs it"
	} else if wrote := state.InstallPolicy(ctx, c.core, c.StateNamespace, version, string(text)); wrote != nil {
		return wrote
	} else {
		says += " has this policy now"
	}
	fmt.Fprintln(w.stdout, says)
	return err
}
