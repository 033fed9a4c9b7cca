package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A versionInfo is what version prints as JSON. Its fields are a contract.
type versionInfo struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and the commit",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch output {
			case "":
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "ip-reaper", longVersion())
				return err
			case "json":
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(versionInfo{buildVersion(), commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
			}
			return ipam.BadInput(fmt.Errorf("--output: unknown format %q", output), "use json")
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "print this `FORMAT`, json, instead of a line")
	return cmd
}

// longVersion returns the version with the commit. It leaves out the commit if it is
// unknown or is the version.
func longVersion() string {
	if commit == "" || commit == buildVersion() {
		return buildVersion()
	}
	return buildVersion() + " (commit " + commit + ")"
}

// version and commit are set by the linker: -X github.com/ip-reaper/ip-reaper/reaper/cli.version=v1.2.3 and
// -X github.com/ip-reaper/ip-reaper/reaper/cli.commit=635c952….
var version, commit string

// buildVersion returns the first that is known of the linked version, the version of the
// module, and the linked commit. If none is known, it returns dev.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return cmp.Or(commit, "dev")
}
