// Command runc-bounded is runc for machines that lack a capability themselves.
//
// Where the bounding set of the Docker daemon lacks a capability, as in many
// sandboxes and virtual machines, runc refuses to start a privileged container:
// "unable to apply caps". This program removes what the machine does not have
// from what is asked for, and then becomes runc. It only removes, so that it
// changes nothing where nothing is missing.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func main() {
	if err := realMain(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "runc-bounded: %v\n", err)
		os.Exit(1)
	}
}

// realMain returns only if runc could not be started.
func realMain(args []string) error {
	runc, err := exec.LookPath("runc")
	if err != nil {
		return fmt.Errorf("find runc, which this program needs: %w", err)
	}
	if file := specFile(args); file != "" {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return err
		}
		bounding, err := boundingSet(string(status))
		if err != nil {
			return err
		}
		if err := bound(file, bounding); err != nil {
			return fmt.Errorf("bound the capabilities in %s: %w", file, err)
		}
	}
	return syscall.Exec(runc, append([]string{"runc"}, args...), os.Environ())
}

// bound rewrites the file: the configuration of a container, or that of a
// process alone.
func bound(file string, bounding map[string]bool) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var spec map[string]any
	if err := decoder.Decode(&spec); err != nil {
		return err
	}
	process := spec
	if inner, ok := spec["process"].(map[string]any); ok {
		process = inner
	}
	if !narrow(process, bounding) {
		return nil
	}
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
