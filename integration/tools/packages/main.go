// Command packages writes what package managers read of a release:
//
//	packages chart VERSION SOURCES     Artifact Hub's annotations, into the chart in SOURCES
//	packages manifests VERSION DIST    krew's manifest and Homebrew's formula, into DIST
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "chart":
		return annotate(args[2], args[1])
	case len(args) == 3 && args[0] == "manifests":
		return manifests(args[2], args[1])
	}
	return fmt.Errorf("%q: give chart VERSION SOURCES, or manifests VERSION DIST", args)
}

// manifests writes the manifest for krew and the formula for Homebrew beside the archives
// in dist.
func manifests(dist, version string) error {
	archives, err := archivesIn(dist, version)
	if err != nil {
		return err
	}
	if err := writeKrew(dist, version, archives); err != nil {
		return err
	}
	return writeFormula(dist, version, archives)
}
