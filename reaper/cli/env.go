package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

const environment = `Every flag can be given as a variable: IP_REAPER_DRY_RUN=false stands for
--dry-run=false. A flag wins over its variable, the variable over the policy
file, and the file over the default.

--help, --version, --server, --cluster, --user and the flags that begin with
--as, --unsafe or --accept must be typed, and so must --context for a command
that writes from outside the cluster: IP_REAPER_CONTEXT only selects the context
to read from. A variable IP_REAPER_... that stands for no flag of any command is
refused, as an unknown flag is.
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
// is refused otherwise, flags that ask for something other than a run, and flags that make a typed
// context another one.
func notFromEnv(flag string) bool {
	return strings.HasPrefix(flag, "unsafe") || strings.HasPrefix(flag, "accept") || flag == "help" || flag == "version" ||
		slices.Contains(clientFlags, flag)
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
