package print

import (
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// currentContext stands for the context that a run inside a cluster does not know. It is
// safe: a journal is found by the ID of its run, which no other cluster has.
const currentContext = `"$(kubectl config current-context)"`

// CommandOn returns a command on the journals, or on that of a run if its ID is known, ready to be
// pasted into an operator's shell.
func CommandOn(command string, run report.RunInfo) string {
	return strings.Join(appendFlag(wordsOn(command, run), "--run", run.ID), " ")
}

// undoOn returns the command that puts back what a run released.
func undoOn(run report.RunInfo) string { return CommandOn("restore", run) + " --dry-run=false" }

// wordsOn returns the words of a command where a run was, as they are typed: on the node, if
// the run was about a node.
//
// A run inside a cluster has a policy file that a workstation does not have, and a program
// that is not called as a plugin there. So its command leaves out the file, and names the
// plugin.
func wordsOn(command string, run report.RunInfo) []string {
	if run.Node != "" {
		return appendFlag([]string{run.Program, "node", command}, "--state-dir", run.StateDir)
	}
	words := []string{"kubectl ip-reaper", command, "--context", currentContext}
	if run.Context != "" {
		words = []string{run.Program, command, "--context", quote(run.Context)}
		words = appendFlag(words, "--kubeconfig", run.Kubeconfig)
		if !piped(run.Policy.File) {
			words = appendFlag(words, "--policy", run.Policy.File)
		}
	}
	return appendFlag(words, "--state-namespace", run.StateNamespace)
}

// piped reports whether a file is a pipe: the shell where a command is pasted has another one.
func piped(file string) bool { return file == "-" || strings.HasPrefix(file, "/dev/") }

// appendFlag adds a flag, unless it has no value.
func appendFlag(words []string, flag, value string) []string {
	if value == "" {
		return words
	}
	return append(words, flag, quote(value))
}

// unquoted are the characters that mean themselves in every shell.
const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,"

// quote returns a text that a POSIX shell reads as one word.
func quote(text string) string {
	if text != "" && strings.Trim(text, unquoted) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
