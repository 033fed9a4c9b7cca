package main

import "runtime/debug"

// version is set by the linker: -X main.version=v1.2.3.
var version string

// buildVersion returns the version that was linked in; else the module's; else
// the commit; else dev.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "dev"
}
