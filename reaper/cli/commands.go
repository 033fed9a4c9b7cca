package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

const envHelp = `ENVIRONMENT
  Every flag but those that begin with --unsafe can be given as a variable:
  IP_REAPER_DRY_RUN=false stands for --dry-run=false. A flag wins over its
  variable, that over the policy file, that over the default.
`

const about = `ip-reaper gives back the addresses that IPAM stores hold for pods that no
longer exist. An address in use is never released. When in doubt, the address is kept.

Without a policy that says "dryRun: false", a run only says what it would do.
`

// newRoot returns the command tree. The root command is the run command.
func newRoot(w ioStreams) *cobra.Command {
	root := newRun(w)
	root.Use = "ip-reaper"
	root.Long = about
	root.Version = longVersion()
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return reaper.BadInput(err, "see "+cmd.CommandPath()+" --help")
	})
	root.SetUsageFunc(usage(root.UsageFunc()))
	root.AddCommand(newRun(w), newRestore(w), newInspect(w), newPolicy(w), newVersion())
	if w.kubectl {
		asPlugin(w, root)
	}
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			strict(cmd)
		}
	}
	addCompletions(w, root)
	return root
}

// usage returns what prints the usage, as cobra does, and the exit codes and the
// variables below. A template would do too, and make the program 12 MB larger: what
// looks up methods by their names keeps the linker from leaving out any.
func usage(common func(*cobra.Command) error) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		if err := common(cmd); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "\n%s\n%s", exitStatus, envHelp)
		return err
	}
}

// strict makes a mistake in usage of arguments to a command that cobra made, and
// of those to its subcommands.
func strict(cmd *cobra.Command) {
	cmd.Args = noArgs
	if !cmd.Runnable() {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// noArgs refuses arguments as a mistake in usage.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return reaper.BadInput(fmt.Errorf("unknown argument %q", args[0]), "see "+cmd.CommandPath()+" --help")
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the commit",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "ip-reaper", longVersion())
			return err
		},
	}
}

func newPolicy(w ioStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Write and check policies",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	known := plugin.Known(w.backends)
	cmd.AddCommand(
		printer("example", "Print a policy with every field explained", func() ([]byte, error) { return policy.Example(known), nil }),
		printer("schema", "Print the JSON schema of policies, for editors", func() ([]byte, error) { return policy.Schema(known) }),
		&cobra.Command{
			Use:   "validate FILE",
			Short: "Check a policy without contacting anything",
			Args: func(cmd *cobra.Command, args []string) error {
				if len(args) == 1 {
					return nil
				}
				return reaper.BadInput(fmt.Errorf("%d files are given, 1 is required", len(args)), cmd.CommandPath()+" FILE")
			},
			RunE: func(cmd *cobra.Command, args []string) error {
				if _, err := loadPolicy(w, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is valid\n", printable.Line(args[0]))
				return err
			},
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

// loadPolicy reads a policy file; no file is the default policy.
func loadPolicy(w ioStreams, file string) (policy.Policy, error) {
	if file == "" {
		return policy.Default(), nil
	}
	data, err := readPolicy(file)
	if err != nil {
		return policy.Policy{}, reaper.BadInput(fmt.Errorf("policy: %w", err), w.name()+" policy example > policy.yaml")
	}
	p, err := policy.Load(data, plugin.Known(w.backends))
	if err != nil {
		return policy.Policy{}, fmt.Errorf("policy %s: %w", file, err)
	}
	return p, nil
}

// readPolicy reads a file, but not more than one byte beyond policy.MaxSize.
func readPolicy(file string) ([]byte, error) {
	text, err := dump.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = text.Close() }()
	return io.ReadAll(io.LimitReader(text, policy.MaxSize+1))
}

// fromEnv sets the flags that were not given from their variables.
func fromEnv(flags *pflag.FlagSet, env func(string) string) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		key := "IP_REAPER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value := env(key)
		if err != nil || f.Changed || value == "" || notFromEnv(f.Name) {
			return
		}
		if bad := flags.Set(f.Name, value); bad != nil {
			err = reaper.BadInput(fmt.Errorf("%s: %w", key, bad), "")
		}
	})
	return err
}

// notFromEnv reports whether a flag must be typed: what is unsafe, and what asks
// for another program than a run.
func notFromEnv(flag string) bool {
	return strings.HasPrefix(flag, "unsafe") || flag == "help" || flag == "version"
}
