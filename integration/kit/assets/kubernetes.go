package assets

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
)

// With these environment variables, make versions chooses a Kubernetes other than the pinned one,
// such as 1.37: its programs are in integration/bin/kubernetes-1.37.
const (
	KubernetesVariable = "IP_REAPER_KUBERNETES" // API server and kubectl
	KubectlVariable    = "IP_REAPER_KUBECTL"    // kubectl, if it is another version
)

var minor = regexp.MustCompile(`^1\.[0-9]+$`)

// Kubernetes returns the minor version of the API server that the environment chooses; empty for
// the pinned one.
func Kubernetes() (string, error) { return chosen(KubernetesVariable) }

// folder returns where the program is in integration/bin.
func folder(name string) (string, error) {
	var version string
	var err error
	switch name {
	case "kube-apiserver":
		version, err = Kubernetes()
	case "kubectl":
		var server string
		if server, err = Kubernetes(); err == nil {
			version, err = chosen(KubectlVariable)
			version = cmp.Or(version, server)
		}
	}
	if err != nil || version == "" {
		return "", err
	}
	return "kubernetes-" + version, nil
}

// chosen returns the minor version that a variable holds.
func chosen(variable string) (string, error) {
	version := os.Getenv(variable)
	if version != "" && !minor.MatchString(version) {
		return "", fmt.Errorf("%s is %q, want a minor version such as 1.37", variable, version)
	}
	return version, nil
}
