package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

const about = `ip-reaper gives back the addresses that IPAM stores hold for pods that no
longer exist. An address in use is never released. When in doubt, the address is kept.

Without a policy that says "dryRun: false", a run only says what it would do.
`

// newRoot returns the command tree. The root command is the run command.
func newRoot(w ioStreams) *cobra.Command {
	root := newRun(w, new(clusterFlags))
	root.Use = "ip-reaper"
	root.Long = about
	root.Version = longVersion()
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return ipam.BadInput(err, flagHint(cmd, err))
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if isPlain(cmd) {
			return nil
		}
		return checkVariables(root, w.environ())
	}
	root.SetUsageFunc(usage(root.UsageFunc()))
	root.AddCommand(newRun(w, new(clusterFlags)), newRestore(w, new(clusterFlags)), newHistory(w, new(clusterFlags)),
		newExplain(w, new(clusterFlags)), newPools(w, new(clusterFlags)), newNode(w), newInspect(w), newPolicy(w), newVersion())
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

// Documented returns the command tree with these backends, for a tool that writes man pages.
// The long text of a command is Markdown, and has its exit codes and variables. The commands
// cannot be run.
func Documented(plugins []plugin.Plugin) *cobra.Command {
	root := newRoot(ioStreams{backends: plugins})
	section := func(text string) string {
		title, body, _ := strings.Cut(text, "\n")
		return "\n\n# " + title + "\n\n```\n" + body + "```\n"
	}
	visitCommands(root, func(cmd *cobra.Command) {
		if !isPlain(cmd) {
			cmd.Long = cmp.Or(cmd.Long, cmd.Short) + section(exitStatus) + section(envHelp)
		}
	})
	return root
}

// plain are the commands that contact nothing and read no variables. Their exit codes are
// 0 and 2, as those of any program. Cobra's hidden commands for completions are among them.
var plain = []string{"policy", "version", "completion", "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// isPlain reports whether a command is a plain one, or is below one.
func isPlain(cmd *cobra.Command) bool {
	for ; cmd != nil && cmd.HasParent(); cmd = cmd.Parent() {
		if slices.Contains(plain, cmd.Name()) {
			return true
		}
	}
	return false
}

// usage returns what prints the usage, as cobra does, and unless the command is plain the
// exit codes and the variables below. A template would do too, and make the program 12 MB larger: what
// looks up methods by their names keeps the linker from leaving out any.
func usage(common func(*cobra.Command) error) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		if err := common(cmd); err != nil || isPlain(cmd) {
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
	return ipam.BadInput(fmt.Errorf("unknown argument %q", args[0]), argumentHint(cmd, args[0]))
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
			Use:   "validate FILE...",
			Short: "Check policies without contacting anything; - is stdin",
			Args: func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return nil
				}
				return ipam.BadInput(errors.New("no file is given"), cmd.CommandPath()+" FILE, or - for stdin")
			},
			RunE: func(_ *cobra.Command, files []string) error { return validate(w, files) },
		},
	)
	return cmd
}

// validate checks policies, and prints the names of those that are valid. The error has the
// mistakes of all the others.
func validate(w ioStreams, files []string) error {
	var errs []error
	for _, file := range files {
		var err error
		if file == dump.Stdin {
			_, err = decodePolicy(w, "stdin", w.stdin)
		} else {
			_, err = loadPolicy(w, file)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, err := fmt.Fprintf(w.stdout, "%s is valid\n", printable.Line(file)); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
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
	text, err := dump.OpenFile(file)
	if err != nil {
		return policy.Policy{}, noPolicy(w, err)
	}
	defer func() { _ = text.Close() }()
	return decodePolicy(w, file, text)
}

// decodePolicy reads a policy, but not more than one byte beyond policy.MaxSize.
func decodePolicy(w ioStreams, name string, text io.Reader) (policy.Policy, error) {
	data, err := io.ReadAll(io.LimitReader(text, policy.MaxSize+1))
	if err != nil {
		return policy.Policy{}, noPolicy(w, err)
	}
	p, err := policy.Load(data, plugin.Known(w.backends))
	if err != nil {
		return policy.Policy{}, fmt.Errorf("policy %s: %w", name, err)
	}
	return p, nil
}

// noPolicy returns the error of a policy that cannot be read.
func noPolicy(w ioStreams, err error) error {
	return ipam.BadInput(fmt.Errorf("policy: %w", err), w.name()+" policy example > policy.yaml")
}
