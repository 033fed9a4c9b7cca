package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"
)

// kubectl looks for these programs: one runs as `kubectl ip-reaper`, the other is
// asked what may follow on such a command line.
const (
	kubectlPlugin   = "kubectl-ip_reaper"
	kubectlComplete = "kubectl_complete-ip_reaper"
)

// called returns by the name that the program was called by, argv[0], whether it is
// a plugin of kubectl, and its arguments.
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

// name is what the user types to call the program.
func (w ioStreams) name() string {
	if w.kubectl {
		return "kubectl ip-reaper"
	}
	return "ip-reaper"
}

const pluginAbout = `
Completion comes with that of kubectl, where the program is on the PATH by the name
` + kubectlComplete + ` too.
`

// asPlugin has a command tree be one of kubectl's. Shells ask kubectl what may
// follow, so there is no script to be made for them.
func asPlugin(w ioStreams, root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: w.name()}
	root.Long += pluginAbout
	root.CompletionOptions.DisableDefaultCmd = true
}
