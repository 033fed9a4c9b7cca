package report

import (
	"cmp"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// someContext stands for a context that the program does not know. No command is for whichever is current.
const someContext = "CONTEXT"

// Command returns a command where the run was, ready to be pasted into an operator's shell: on the node,
// if the run was about a node.
//
// A run inside a cluster has a policy file that a workstation does not have, and a program
// that is not called as a plugin there. So its command leaves out the file, and names the
// plugin.
func (r RunInfo) Command(command string, args ...string) string {
	var words []string
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	program := r.Program
	switch {
	case r.Node != "":
		command = "node " + command
		add("--state-dir", r.StateDir)
	case r.Context == "":
		program = "kubectl ip-reaper"
		add("--context", cmp.Or(r.KnownAs, someContext))
	default:
		add("--context", r.Context)
		add("--kubeconfig", r.Kubeconfig)
		words = append(words, r.ClientFlags...)
		if !r.Policy.Piped() {
			add("--policy", r.Policy.File)
		}
	}
	if r.Node == "" && r.StateNamespace != StateNamespace {
		add("--state-namespace", r.StateNamespace)
	}
	typed := []string{program, command}
	if words = append(words, args...); len(words) > 0 {
		typed = append(typed, printable.Typed(words...))
	}
	return strings.Join(typed, " ")
}

// Kubectl returns the flags with which kubectl contacts the cluster of the run.
func (o Origin) Kubectl() []string {
	var words []string
	if o.Kubeconfig != "" {
		words = append(words, "--kubeconfig", o.Kubeconfig)
	}
	if o.Context != "" {
		words = append(words, "--context", o.Context)
	}
	return append(words, o.ClientFlags...)
}

// where says where the policy is, for people who edit it.
func (p PolicyInfo) where() string {
	switch {
	case p.Installed != "":
		return "ConfigMap " + p.Installed
	case p.File != "" && !p.Piped():
		return p.File
	}
	return "the policy"
}

// Piped reports whether the policy is from a pipe: the shell where a command is pasted has another one.
func (p PolicyInfo) Piped() bool { return p.File == "-" || strings.HasPrefix(p.File, "/dev/") }
