package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

const policyExamples = `  # Write a policy, change it, and check it; - is stdin
  %[1]s policy example > policy.yaml
  %[1]s policy validate policy.yaml
  %[1]s policy validate - < policy.yaml

  # Which of its patterns match nothing in this cluster?
  %[1]s policy validate --context prod policy.yaml

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
	for _, name := range []string{"context", "kubeconfig"} { // it has no use for the state
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	all.Lookup("context").Usage = "list the patterns that match nothing in the cluster of this `CONTEXT` of the kubeconfig"
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
	if f.cluster.context == "" && (f.cluster.kubeconfig != "" || f.flags.Changed("context")) {
		return ipam.BadInput(errors.New("no --context is named"), "name one to compare the policy with its cluster, or give no flag to contact nothing")
	}
	var errs []error
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
		if f.cluster.context != "" {
			unmatched, err := f.unmatched(ctx, w, file, p)
			warnings, errs = append(warnings, unmatched...), append(errs, err)
		}
		for _, warning := range warnings {
			fmt.Fprintf(w.stderr, "warning: policy %s: %s\n", printable.Line(file), printable.Line(warning))
		}
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

const environment = `Every flag can be given as a variable: IP_REAPER_DRY_RUN=false stands for
--dry-run=false. A flag wins over its variable, the variable over the policy
file, and the file over the default.

--help, --version and the flags that begin with --unsafe or --accept must be
typed, and so must --context for a command that writes from outside the
cluster: IP_REAPER_CONTEXT only selects the context to read from. A variable
IP_REAPER_... that stands for no flag of any command is refused, as an unknown
flag is.
`

// envPrefix begins the names of the variables that stand for flags.
const envPrefix = "IP_REAPER_"

// variable returns the name of the variable that stands for a flag.
func variable(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// setByVariable annotates a flag whose value comes from its variable.
const setByVariable = "ip-reaper_variable"

// withEnv returns the function of a command that reads its variables first.
func withEnv(w ioStreams, run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := checkVariables(cmd.Root(), w.environ()); err != nil {
			return err
		}
		if err := fromEnv(cmd.Flags(), w.env); err != nil {
			return err
		}
		return run(cmd.Context(), args)
	}
}

// fromEnv sets the flags that were not given from their variables.
func fromEnv(flags *pflag.FlagSet, env func(string) string) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		value := env(variable(f.Name))
		if err != nil || f.Changed || value == "" || notFromEnv(f.Name) {
			return
		}
		if bad := flags.Set(f.Name, value); bad != nil {
			err = ipam.BadInput(fmt.Errorf("%s: %w", variable(f.Name), bad), "")
			return
		}
		err = flags.SetAnnotation(f.Name, setByVariable, nil)
	})
	return err
}

// typed reports whether a flag was given on the command line.
func typed(f *pflag.Flag) bool {
	_, byVariable := f.Annotations[setByVariable]
	return f.Changed && !byVariable
}

// notFromEnv reports whether a flag must be typed: flags that are unsafe, flags that accept what
// is refused otherwise, and flags that ask for something other than a run.
func notFromEnv(flag string) bool {
	return strings.HasPrefix(flag, "unsafe") || strings.HasPrefix(flag, "accept") || flag == "help" || flag == "version"
}

// serviceLink matches the variables that the kubelet sets in every pod for a Service whose
// name is ip-reaper or begins with ip-reaper-, after the common prefix.
var serviceLink = regexp.MustCompile(`^(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// checkVariables refuses a variable with our prefix that sets nothing: it stands for no
// flag of any command, or for one that must be typed. Variables for flags of other
// commands are accepted, because the commands of one image share an environment. So are
// variables without a value, and those of Services.
func checkVariables(root *cobra.Command, environ []string) error {
	known := make(map[string]string) // flags by their variables
	visitCommands(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { known[variable(f.Name)] = f.Name })
	})
	for _, setting := range slices.Sorted(slices.Values(environ)) {
		key, value, _ := strings.Cut(setting, "=")
		rest, ours := strings.CutPrefix(key, envPrefix)
		if !ours || value == "" || serviceLink.MatchString(rest) {
			continue
		}
		switch flag, ok := known[key]; {
		case !ok:
			return ipam.BadInput(fmt.Errorf("unknown variable %s", key),
				cmp.Or(printable.Meant(key, slices.Collect(maps.Keys(known))), "see "+root.CommandPath()+" help environment"))
		case notFromEnv(flag):
			return ipam.BadInput(fmt.Errorf("%s: --%s must be typed", key, flag), "unset the variable")
		}
	}
	return nil
}

// visitCommands calls visit with a command and all commands below it.
func visitCommands(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		visitCommands(sub, visit)
	}
}

// seeHelp is the hint for a mistake in what was typed.
func seeHelp(cmd *cobra.Command) string { return "see " + cmd.CommandPath() + " --help" }

// flagHint is the hint for a mistake in a flag.
func flagHint(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return seeHelp(cmd)
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
	return cmp.Or(printable.Meant("--"+unknown.GetSpecifiedName(), flags), seeHelp(cmd))
}

// noArgs refuses arguments as a mistake in usage.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var commands []string
	for _, sub := range cmd.Commands() {
		commands = append(commands, sub.Name())
	}
	return ipam.BadInput(fmt.Errorf("unknown argument %q", args[0]), cmp.Or(printable.Meant(args[0], commands), seeHelp(cmd)))
}

// files requires at least one argument.
func files(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return ipam.BadInput(fmt.Errorf("%s needs a file", cmd.Name()), cmd.CommandPath()+" FILE, or - for stdin")
}
