package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

const policyExamples = `  # Write a policy, change it, and check it
  %[1]s policy example > policy.yaml
  %[1]s policy validate policy.yaml

  # Which of its names match nothing in this cluster? In CI, that is exit code 3
  %[1]s policy validate --context prod --strict policy.yaml

  # A schema for editors
  %[1]s policy schema > policy.schema.json`

func newPolicy(w ioStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		Short:   "Print an example of a policy, and check policies",
		Example: fmt.Sprintf(policyExamples, w.name()),
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	known := plugin.Known(w.backends)
	cmd.AddCommand(
		printer("example", "Print a policy with every field explained", func() ([]byte, error) { return policy.Example(known), nil }),
		printer("schema", "Print the JSON schema of policies, for editors", func() ([]byte, error) { return policy.Schema(known) }),
		newValidate(w),
	)
	return cmd
}

// validateFlags are the flags of policy validate. Without a context, it contacts nothing.
type validateFlags struct {
	commandFlags
	cluster clusterFlags
	strict  bool
}

func newValidate(w ioStreams) *cobra.Command {
	f := &validateFlags{commandFlags: commandFlags{timeout: defaultTimeout, concurrency: defaultConcurrency}}
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check policy files; with --context, against a cluster",
		Args:  files,
		RunE:  func(cmd *cobra.Command, files []string) error { return validate(cmd.Context(), w, f, files) },
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.cluster.add(all)
	f.flags, f.target = all, &f.cluster
	for _, name := range append([]string{"context", "kubeconfig"}, clientFlags...) { // it has no use for the state
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	all.Lookup("context").Usage = "list the patterns that match nothing in the cluster of this `CONTEXT` of the kubeconfig"
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

// validate checks policies, and prints the names of those that are valid, and warnings about them.
// The error has the mistakes of all the others.
func validate(ctx context.Context, w ioStreams, f *validateFlags, files []string) error {
	checks := f.cluster.client.CurrentContext != ""
	if !checks && (f.cluster.kubeconfig != "" || f.flags.Changed("context") || f.strict) {
		return ipam.BadInput(errors.New("no --context is named"), "name one to compare the policy with its cluster, or give no flag to contact nothing")
	}
	var errs []error
	unchecked := false
	for _, file := range files {
		p, err := loadPolicy(ctx, w, file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, err := fmt.Fprintf(w.stdout, "%s is valid\n", printable.Line(file)); err != nil {
			return err
		}
		warnings := p.Warnings()
		named := func(pattern policy.Pattern) bool { return !pattern.Everything() }
		switch {
		case checks:
			unmatched, err := f.unmatched(ctx, w, file, p)
			warnings, errs = append(warnings, unmatched...), append(errs, err)
			if f.strict && len(unmatched) > 0 {
				errs = append(errs, report.Partial([]error{fmt.Errorf("policy %s: names that match nothing: %d", file, len(unmatched))}))
			}
		case slices.ContainsFunc(p.Patterns(), named):
			unchecked = true
		}
		for _, warning := range warnings {
			fmt.Fprintf(w.stderr, "warning: policy %s: %s\n", printable.Line(file), printable.Line(warning))
		}
	}
	if unchecked {
		fmt.Fprintln(w.stderr, "names were not checked: add --context")
	}
	return errors.Join(errs...)
}

// unmatched says which patterns of a policy match nothing in the cluster. Nothing is known of the
// stores on its nodes.
func (f validateFlags) unmatched(ctx context.Context, w ioStreams, file string, p policy.Policy) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	f.policyFile = file
	conn, err := f.connect(ctx, w, false, p, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer conn.close()
	found, err := reaper.Unmatched(ctx, conn.Options)
	var says []string
	for _, u := range found {
		onNodes := func(b plugin.Plugin) bool { return b.Scope == plugin.Node && u.Matches(b.Name) }
		if u.Of != policy.BackendNames || !slices.ContainsFunc(w.backends, onNodes) {
			says = append(says, u.String())
		}
	}
	return says, err
}
