package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"
)

// kubectl looks for programs of these names. It runs the first as `kubectl ip-reaper`,
// and the second to complete such a command line.
const (
	kubectlPlugin   = "kubectl-ip_reaper"
	kubectlComplete = "kubectl_complete-ip_reaper"
)

// called returns whether the name of the program, argv[0], is that of a kubectl plugin,
// and the arguments of the command.
func called(argv []string) (kubectl bool, args []string) {
	switch args = argv[1:]; filepath.Base(argv[0]) {
	case kubectlPlugin:
		return true, args
	case kubectlComplete:
		return true, append([]string{cobra.ShellCompRequestCmd}, args...)
	default:
		return false, args
	}
}

// name returns the words with which the user starts the program.
func (w ioStreams) name() string {
	if w.kubectl {
		return "kubectl ip-reaper"
	}
	return "ip-reaper"
}

const pluginAbout = `
kubectl completes its command line if the PATH has the program by the name
` + kubectlComplete + ` too.
`

// asPlugin makes the command tree a plugin of kubectl. It removes the command that
// writes completion scripts, because shells complete by kubectl.
func asPlugin(w ioStreams, root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: w.name()}
	root.Long += pluginAbout
	root.CompletionOptions.DisableDefaultCmd = true
}
