package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// version and commit are set by the linker: -X github.com/ip-reaper/ip-reaper/reaper/cli.version=v1.2.3 and
// -X github.com/ip-reaper/ip-reaper/reaper/cli.commit=635c952….
var version, commit string

// buildVersion returns the first that is known of the linked version, the version of the
// module, and the commit. If none is known, it returns dev.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return cmp.Or(buildCommit(), "dev")
}

// buildCommit returns the linked commit, or the commit that the go command recorded, or
// nothing.
func buildCommit() string {
	if commit != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// longVersion returns the version with the commit. It leaves out the commit if it is
// unknown or is the version.
func longVersion() string {
	v, c := buildVersion(), buildCommit()
	if c == "" || c == v {
		return v
	}
	return v + " (commit " + c + ")"
}

// A versionInfo is what version prints as JSON and YAML. Its fields are a contract.
type versionInfo struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// versionFormats are the formats of version; the default is a line.
var versionFormats = []string{"json", "yaml"}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and the commit",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "print `FORMAT` json or yaml instead of a line")
	return cmd
}

// printVersion prints the version in a format; as a line if it is empty.
func printVersion(w io.Writer, format string) error {
	info := versionInfo{buildVersion(), buildCommit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	switch {
	case format == "":
		_, err := fmt.Fprintln(w, "ip-reaper", longVersion())
		return err
	case !slices.Contains(versionFormats, format):
		return ipam.BadInput(fmt.Errorf("--output: unknown format %q", format), "use "+strings.Join(versionFormats, " or "))
	case format == "yaml":
		data, err := yaml.Marshal(info)
		if err != nil {
			return err
		}
		_, err = printable.YAML(w).Write(data)
		return err
	}
	encoder := json.NewEncoder(printable.JSON(w))
	encoder.SetIndent("", "  ")
	return encoder.Encode(info)
}
