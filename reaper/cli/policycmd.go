package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

const policyExamples = `  # Write a policy, change it, and check it; - is stdin
  %[1]s policy example > policy.yaml
  %[1]s policy validate policy.yaml
  %[1]s policy validate - < policy.yaml

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
		&cobra.Command{
			Use:   "validate FILE...",
			Short: "Check policy files, without contacting anything",
			Args:  files,
			RunE:  func(cmd *cobra.Command, files []string) error { return validate(cmd.Context(), w, files) },
		},
	)
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

// validate checks policies, and prints the names of those that are valid. The error has the
// mistakes of all the others.
func validate(ctx context.Context, w ioStreams, files []string) error {
	var errs []error
	for _, file := range files {
		if _, err := loadPolicy(ctx, w, file); err != nil {
			errs = append(errs, err)
			continue
		}
		if _, err := fmt.Fprintf(w.stdout, "%s is valid\n", printable.Line(file)); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// loadPolicy reads a policy file, but at most one byte beyond policy.MaxSize. Without a file,
// it returns the default policy.
func loadPolicy(ctx context.Context, w ioStreams, file string) (policy.Policy, error) {
	if file == "" {
		return policy.Default(), nil
	}
	var data []byte
	text, name, err := dump.Open(ctx, w.stdin, file)
	if err == nil {
		defer text.Close()
		data, err = io.ReadAll(io.LimitReader(text, policy.MaxSize+1))
	}
	if err != nil {
		return policy.Policy{}, ipam.BadInput(fmt.Errorf("policy: %w", err), "write one: "+w.name()+" policy example > policy.yaml")
	}
	p, err := policy.Load(data, plugin.Known(w.backends))
	if err != nil {
		return policy.Policy{}, fmt.Errorf("policy %s: %w", name, err)
	}
	return p, nil
}
