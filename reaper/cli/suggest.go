package cli

import (
	"cmp"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// maxSuggested is how many names a hint suggests.
const maxSuggested = 3

// suggest returns the names that a mistyped one most probably means, in their order. It
// measures as cobra does for commands: by edits, and by a common prefix.
func suggest(typed string, names []string) []string {
	list := &cobra.Command{}
	for _, name := range names {
		list.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	for edits := 1; edits <= max(1, min(3, len(typed)/3)); edits++ {
		list.SuggestionsMinimumDistance = edits
		if found := list.SuggestionsFor(typed); len(found) > 0 {
			return found[:min(len(found), maxSuggested)]
		}
	}
	return nil
}

// meant returns a hint with the names that a mistyped one may mean; empty without any.
func meant(typed string, names []string) string {
	found := suggest(typed, names)
	if len(found) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(found, " or ") + "?"
}

// flagHint returns the hint for an error of a command's flags.
func flagHint(cmd *cobra.Command, err error) string {
	see := "see " + cmd.CommandPath() + " --help"
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return see
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return cmp.Or(meant("--"+unknown.GetSpecifiedName(), names), see)
}

// argumentHint returns the hint for an argument that a command does not take.
func argumentHint(cmd *cobra.Command, argument string) string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return cmp.Or(meant(argument, names), "see "+cmd.CommandPath()+" --help")
}
