package cli

import (
	"cmp"
	"runtime/debug"
)

// version and commit are set by the linker: -X github.com/ip-reaper/ip-reaper/reaper/cli.version=v1.2.3 and
// -X github.com/ip-reaper/ip-reaper/reaper/cli.commit=635c952….
var version, commit string

// buildVersion returns the version that was linked in; else the module's; else
// the commit; else dev.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return cmp.Or(buildCommit(), "dev")
}

// buildCommit returns the commit that was linked in; else the one that go saw
// when it built; else nothing.
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

// longVersion returns the version with the commit, where that is known and is not
// the version itself.
func longVersion() string {
	v, c := buildVersion(), buildCommit()
	if c == "" || c == v {
		return v
	}
	return v + " (commit " + c + ")"
}
